# Depth of the synthetic humans at 1024x768 (height x width).
_base_ = 'synthetic_humans_dense.py'
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['depth']),
    dict(type='sapiens2_mm.PhotometricDistortion'),
    dict(type='sapiens2_mm.DenseRandomScale', prob=0.3, scale_range=(0.5, 2.0)),
    dict(type='sapiens2_mm.DenseRandomCrop', prob=0.3),
    dict(type='sapiens2_mm.DenseRandomFlip', prob=0.5),
    dict(type='sapiens2_mm.Letterbox', size=(1024, 768)),
    dict(type='sapiens2_mm.RelativeDepthTarget'),
    dict(type='sapiens2_mm.FilterByMask'),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
# Annotations keep their own size; predictions are brought back to it.
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['depth']),
    dict(
        type='sapiens2_mm.Letterbox',
        size=(1024, 768),
        rounding='floor',
        with_maps=False,
    ),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
val_evaluator = dict(type='sapiens2_mm.DepthMetric')
test_evaluator = val_evaluator
