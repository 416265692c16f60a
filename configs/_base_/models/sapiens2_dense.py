# What the models of all dense tasks share: 0.4b at 1024x768.
recompute = 'full'  # of the blocks of the encoder
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
    ),
    decode_head=dict(
        in_channels=1024,
        upsample_channels=(768, 512, 256, 128),
        conv_out_channels=(64, 32, 16),
        conv_kernel_sizes=(3, 3, 3),
    ),
)
visualizer = dict(vis_backends=[dict(type='LocalVisBackend')], name='visualizer')
