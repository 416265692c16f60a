# Masks of the synthetic humans as hard mattes at 1024x768, official pipeline. With real
# mattes use MattingListDataset, LoadMatte() and RandomMatteBackground.
_base_ = 'synthetic_humans_dense.py'
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadMatte', binary=True),
    dict(type='sapiens2_mm.RandomJpeg', prob=0.5, quality=(30, 60)),
    dict(type='sapiens2_mm.RandomAlphaCrop', prob=0.5, margin=(0.0, 0.1)),
    dict(type='sapiens2_mm.DenseRandomScale', prob=1.0, scale_range=(0.4, 2.0)),
    dict(type='sapiens2_mm.DenseRandomCrop', prob=0.5),
    dict(type='sapiens2_mm.RandomMatteRotate', prob=0.5, max_angle=60),
    dict(type='sapiens2_mm.DenseRandomFlip', prob=0.5),
    dict(type='sapiens2_mm.DenseResize', size=(1024, 768)),
    dict(type='sapiens2_mm.PhotometricDistortion', prob=0.5),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
# Annotations keep their own size; predictions are brought back to it.
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadMatte', binary=True),
    dict(type='sapiens2_mm.DenseResize', size=(1024, 768), with_maps=False),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
val_evaluator = dict(type='sapiens2_mm.MattingMetric')
test_evaluator = val_evaluator
