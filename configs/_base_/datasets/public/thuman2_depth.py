# Depth of renders of the scans of THuman2, a folder for each scan.
_base_ = 'test_loader.py'
default_scope = 'sapiens2_mm'
guide = (
    'The scans are on the GitHub page "THuman2.0-Dataset" of ytrock, on request; '
    'render them. Below data_root (data/thuman2) there must be SCAN/rgb/VIEW.png, '
    'SCAN/mask/VIEW.png, SCAN/depth/VIEW.npy (meters along Z, float, 0 where unknown)'
    ' and SCAN/normal/VIEW.npy (X right, Y down, Z forward), such as '
    '0001/rgb/face_000.png; other folders are named by '
    'test_dataloader.dataset.data_prefix, other axes of normals by normal_signs'
)
data_prefix = dict(
    img='*/rgb/*', mask='*/mask/*', depth='*/depth/*', normal='*/normal/*'
)
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
test_dataloader = dict(
    dataset=dict(
        type='sapiens2_mm.DenseFolderDataset',
        data_root='data/thuman2',
        fields=['depth'],
        data_prefix=data_prefix,
        guide=guide,
        pipeline=test_pipeline,
    )
)
# As in the figures of Sapiens: relative depth, fitted to each image.
test_evaluator = dict(type='sapiens2_mm.DepthMetric')
