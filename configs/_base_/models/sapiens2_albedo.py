# Albedo.
_base_ = 'sapiens2_dense.py'
model = dict(
    decode_head=dict(
        type='sapiens2_mm.AlbedoHead',
        loss_decode=[
            dict(type='sapiens2_mm.MaskedL1Loss', loss_weight=2.0),
            dict(type='sapiens2_mm.MaskedGradientLoss', axes='mean', loss_weight=2.0),
            dict(type='sapiens2_mm.ChromaticityLoss', loss_weight=1.0),
        ],
    ),
)
visualizer = dict(type='sapiens2_mm.AlbedoVisualizer')
