# Surface normals.
_base_ = 'sapiens2_dense.py'
model = dict(
    decode_head=dict(
        type='sapiens2_mm.NormalHead',
        loss_decode=[
            dict(type='sapiens2_mm.NormalCosineLoss', loss_weight=10.0),
            dict(type='sapiens2_mm.MaskedL1Loss', loss_weight=1.0),
            dict(type='sapiens2_mm.MaskedGradientLoss', loss_weight=10.0),
        ],
    ),
)
visualizer = dict(type='sapiens2_mm.NormalVisualizer')
