# Pointmap: 0.4b at 1024x768. feature_size is img_size / 16.
model = dict(
    type='sapiens2_mm.DenseEstimator',
    data_preprocessor=dict(
        type='sapiens2_mm.DenseDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
    ),
    backbone=dict(
        type='sapiens2_mm.Sapiens2',
        arch='sapiens2_0.4b',
        img_size=(1024, 768),
        out_type='featmap',
        with_cp=True,
    ),
    decode_head=dict(
        type='sapiens2_mm.PointmapHead',
        in_channels=1024,
        upsample_channels=(1536, 768, 512, 256),
        conv_out_channels=(64, 32, 16),
        conv_kernel_sizes=(3, 3, 3),
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
visualizer = dict(
    type='sapiens2_mm.PointmapVisualizer',
    vis_backends=[dict(type='LocalVisBackend')],
    name='visualizer',
)
