_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pose.py',
    '../_base_/datasets/humans308_1024x768.py',
    '../_base_/schedules/probe_5k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans_128x96'
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=96,
            num_layers=4,
            num_heads=3,
            feedforward_channels=192,
        ),
        img_size=(128, 96),
        patch_size=8,
        rope_dtype='fp32',
        frozen_stages=4,
    ),
    # A quarter of the picture's size, as with patches of 16 pixels.
    neck=dict(type='sapiens2_mm.ProbeNeck', in_channels=96, scale_factor=2),
    head=dict(
        in_channels=256,
        deconv_out_channels=(),
        deconv_kernel_sizes=(),
        conv_out_channels=(),
        conv_kernel_sizes=(),
        decoder=dict(input_size=(96, 128), heatmap_size=(24, 32), sigma=1.5),
    ),
    test_cfg=dict(flip_test=False),
)
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='mmpose.GetBBoxCenterScale', padding=1.25),
    dict(type='mmpose.RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='sapiens2_mm.Sapiens2TopdownAffine', input_size=(96, 128)),
    dict(type='mmpose.PackPoseInputs', pack_transformed=True),
]
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='mmpose.GetBBoxCenterScale', padding=1.25),
    dict(type='sapiens2_mm.Sapiens2TopdownAffine', input_size=(96, 128)),
    dict(type='mmpose.PackPoseInputs'),
]
train_dataloader = dict(
    batch_size=32,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=32,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=test_pipeline),
)
test_dataloader = val_dataloader
val_evaluator = [
    dict(type='sapiens2_mm.KeypointOKSMetric'),
    dict(type='mmpose.PCKAccuracy', thr=0.05, norm_item='bbox'),
]
test_evaluator = val_evaluator
train_cfg = dict(max_iters=500, val_interval=500)
param_scheduler = [
    dict(type='CosineAnnealingLR', eta_min=0.0, by_epoch=False, begin=0, end=500)
]
default_hooks = dict(logger=dict(interval=20))
