# As in the first Sapiens: images are stretched to 1024x768 (height x width).
# With photos for background_dir; None draws fields of random colors.
_base_ = 'synthetic_humans_dense.py'
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['normal']),
    dict(type='sapiens2_mm.RandomBackground', background_dir=None, prob=0.5),
    dict(type='sapiens2_mm.DenseRandomScale', prob=1.0, scale_range=(0.2, 2.0)),
    dict(type='sapiens2_mm.DenseRandomCrop', prob=1.0, size=(1024, 768)),
    dict(type='sapiens2_mm.DenseResize', size=(1024, 768), area_when_shrinking=False),
    dict(type='sapiens2_mm.DenseRandomFlip', prob=0.5),
    dict(type='sapiens2_mm.PhotometricDistortion'),
    dict(type='sapiens2_mm.FilterByMask'),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
# Annotations keep their own size; predictions are brought back to it.
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['normal']),
    dict(
        type='sapiens2_mm.DenseResize',
        size=(1024, 768),
        area_when_shrinking=False,
        with_maps=False,
    ),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
val_evaluator = dict(type='sapiens2_mm.NormalMetric')
test_evaluator = val_evaluator
