# Alpha mattes.
_base_ = 'sapiens2_dense.py'
model = dict(
    decode_head=dict(
        type='sapiens2_mm.MattingHead',
        loss_decode=[
            dict(type='sapiens2_mm.MattingL1Loss', loss_weight=1.0),
            dict(type='sapiens2_mm.MattingGradientLoss', loss_weight=1.0),
            dict(type='sapiens2_mm.MattingLaplacianLoss', loss_weight=1.0),
        ],
        loss_foreground=[
            dict(type='sapiens2_mm.MattingL1Loss', loss_weight=1.0),
            dict(type='sapiens2_mm.MattingGradientLoss', loss_weight=1.0),
            dict(type='sapiens2_mm.MattingLaplacianLoss', loss_weight=1.0),
        ],
    ),
)
visualizer = dict(type='sapiens2_mm.MattingVisualizer')
