# Relative depth.
_base_ = 'sapiens2_dense.py'
model = dict(
    decode_head=dict(
        type='sapiens2_mm.DepthHead',
        loss_decode=dict(type='sapiens2_mm.SILogLoss', loss_weight=1.0, eps=1e-6),
    ),
)
visualizer = dict(type='sapiens2_mm.DepthVisualizer')
