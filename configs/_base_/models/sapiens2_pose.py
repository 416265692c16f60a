# Backbone, heatmap head and drawing of the pose task: 0.4b at 1024x768, 308 keypoints.
model = dict(
    type='mmpose.TopdownPoseEstimator',
    _scope_='mmpose',
    data_preprocessor=dict(
        type='mmpose.PoseDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
    ),
    backbone=dict(
        type='sapiens2_mm.Sapiens2',
        arch='sapiens2_0.4b',
        img_size=(1024, 768),
        out_type='featmap',
    ),
    head=dict(
        type='sapiens2_mm.Sapiens2PoseHead',
        in_channels=1024,
        out_channels=308,
        deconv_out_channels=(1024, 768),
        deconv_kernel_sizes=(4, 4),
        conv_out_channels=(512, 512, 256),
        conv_kernel_sizes=(1, 1, 1),
        loss=dict(type='sapiens2_mm.KeypointMSELoss', loss_weight=10.0),
        decoder=dict(
            type='mmpose.UDPHeatmap',
            input_size=(768, 1024),  # (width, height), mmpose's order
            heatmap_size=(192, 256),
            sigma=6,
            blur_kernel_size=11,
        ),
    ),
    test_cfg=dict(flip_test=True, flip_mode='heatmap', shift_heatmap=False),
)
visualizer = dict(
    type='sapiens2_mm.Sapiens2PoseVisualizer',
    vis_backends=[dict(type='LocalVisBackend')],
    name='visualizer',
)
tta_model = dict(type='sapiens2_mm.Sapiens2PoseTTAModel')
