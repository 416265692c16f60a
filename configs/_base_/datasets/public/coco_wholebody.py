# COCO-WholeBody val 1.0, 133 keypoints: the images of COCO with more annotations.
_base_ = 'coco.py'
guide = (
    'The annotations are on the GitHub page "COCO-WholeBody" of jin-s13. Below '
    'data_root (data/coco) there must be annotations/coco_wholebody_val_v1.0.json; as'
    ' to the rest: '
) + _base_.guide
test_dataloader = dict(
    dataset=dict(
        type='sapiens2_mm.Sapiens2CocoWholeBodyDataset',
        ann_file='annotations/coco_wholebody_val_v1.0.json',
        guide=guide,
    )
)
test_evaluator = dict(type='sapiens2_mm.Sapiens2CocoWholeBodyMetric')
