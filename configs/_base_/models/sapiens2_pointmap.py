# Pointmap. feature_size is img_size / 16.
_base_ = 'sapiens2_dense.py'
model = dict(
    decode_head=dict(
        type='sapiens2_mm.PointmapHead',
        upsample_channels=(1536, 768, 512, 256),
        feature_size=(64, 48),
        scale_conv_out_channels=(1536, 512, 128),
        scale_hidden_channels=(512, 128),
        loss_decode=[
            dict(type='sapiens2_mm.MaskedL1Loss', loss_weight=2.0, max_value=4.0),
            dict(type='sapiens2_mm.MultiscaleL1Loss', scale_factor=2, max_value=4.0),
            dict(
                type='sapiens2_mm.ShiftInvariantL1Loss', loss_weight=1.0, max_value=4.0
            ),
        ],
        loss_depth=dict(type='sapiens2_mm.SILogLoss', loss_weight=1.0),
        loss_geometry=[
            dict(type='sapiens2_mm.IntrinsicsLoss', loss_weight=1.0),
            dict(type='sapiens2_mm.PointmapNormalLoss', loss_weight=2.0),
        ],
        loss_scale=dict(type='sapiens2_mm.ScaleL1Loss', loss_weight=4.0),
    ),
)
visualizer = dict(type='sapiens2_mm.PointmapVisualizer')
