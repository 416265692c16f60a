# P3M-10k, the 500 test portraits with blurred faces (P3M-500-P).
_base_ = 'test_loader.py'
default_scope = 'sapiens2_mm'
guide = (
    'P3M-10k is on the GitHub page "P3M" of JizhiziLi. Below data_root (data/p3m10k) '
    'there must be validation/P3M-500-P/blurred_image/NAME.jpg and '
    'validation/P3M-500-P/mask/NAME.png; for the portraits with faces set '
    'test_dataloader.dataset.data_prefix to validation/P3M-500-NP/original_image and '
    'validation/P3M-500-NP/mask'
)
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadMatte'),
    dict(type='sapiens2_mm.DenseResize', size=(1024, 768), with_maps=False),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
test_dataloader = dict(
    dataset=dict(
        type='sapiens2_mm.DenseFolderDataset',
        data_root='data/p3m10k',
        fields=['alpha'],
        with_mask=False,
        data_prefix=dict(
            img='validation/P3M-500-P/blurred_image',
            alpha='validation/P3M-500-P/mask',
        ),
        guide=guide,
        pipeline=test_pipeline,
    )
)
test_evaluator = dict(type='sapiens2_mm.MattingMetric')
