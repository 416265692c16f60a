# COCO val2017, 17 keypoints. Models of other keypoints are scored by their names.
_base_ = 'test_loader.py'
default_scope = 'mmpose'
guide = (
    'COCO is on the page "COCO - Common Objects in Context", Download: "2017 Val '
    'images" and "2017 Train/Val annotations". Below data_root (data/coco) there must'
    ' be val2017/*.jpg, annotations/person_keypoints_val2017.json and '
    'person_detection_results/COCO_val2017_detections_AP_H_70_person.json; the last '
    'is on the Hugging Face page "facebook/sapiens-pose-bbox-detector", or set '
    'test_dataloader.dataset.bbox_file=None to take the annotated boxes'
)
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='mmpose.GetBBoxCenterScale', padding=1.25),
    dict(type='sapiens2_mm.Sapiens2TopdownAffine', input_size=(768, 1024)),
    dict(type='mmpose.PackPoseInputs'),
]
test_dataloader = dict(
    dataset=dict(
        type='sapiens2_mm.Sapiens2CocoDataset',
        data_root='data/coco',
        ann_file='annotations/person_keypoints_val2017.json',
        bbox_file=(
            'person_detection_results/COCO_val2017_detections_AP_H_70_person.json'
        ),
        data_prefix=dict(img='val2017'),
        guide=guide,
        pipeline=test_pipeline,
    )
)
test_evaluator = dict(type='sapiens2_mm.Sapiens2CocoMetric')
