# Body-part segmentation: 0.4b at 1024x768, 29 classes.
recompute = 'full'  # of the blocks of the encoder
model = dict(
    type='sapiens2_mm.Sapiens2Segmentor',
    _scope_='mmseg',
    data_preprocessor=dict(
        type='mmseg.SegDataPreProcessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        pad_val=0,
        seg_pad_val=255,
        size_divisor=1,
    ),
    backbone=dict(
        type='sapiens2_mm.Sapiens2',
        arch='sapiens2_0.4b',
        img_size=(1024, 768),
        out_type='featmap',
    ),
    decode_head=dict(
        type='sapiens2_mm.Sapiens2SegHead',
        in_channels=1024,
        num_classes=29,
        deconv_out_channels=(512, 256, 128, 64),
        deconv_kernel_sizes=(4, 4, 4, 4),
        conv_out_channels=(64, 64),
        conv_kernel_sizes=(1, 1),
        loss_decode=[
            dict(
                type='sapiens2_mm.WeightedCrossEntropyLoss',
                # In the order of the classes: background, apparel, eyeglass, ...
                class_weight=[
                    *[0.1, 10, 10, 3, 2],
                    *[4, 4, 2, 2, 6, 10, 3, 3],  # left foot to left upper leg
                    1,  # lower clothing
                    *[4, 4, 2, 2, 6, 10, 3, 3],  # right foot to right upper leg
                    *[1, 1],  # torso, upper clothing
                    *[10, 10, 10, 10, 10],  # lips, teeth, tongue
                ],
                loss_weight=1.0,
            ),
            dict(type='sapiens2_mm.Sapiens2DiceLoss', loss_weight=1.0),
        ],
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)
visualizer = dict(
    type='sapiens2_mm.Sapiens2SegVisualizer',
    vis_backends=[dict(type='LocalVisBackend')],
    name='visualizer',
)
tta_model = dict(type='sapiens2_mm.Sapiens2SegTTAModel')
