# A model small enough for two CPU cores: for trying the tools, not for use.
_base_ = [
    '../_base_/models/sapiens2_pose.py',
    '../_base_/datasets/humans308_1024x768.py',
    '../_base_/schedules/tiny.py',
]
default_scope = 'mmpose'
data_root = 'data/synthetic_humans_256x192_128'
size = (256, 192)  # (height, width)
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=96,
            num_layers=4,
            num_heads=3,
            feedforward_channels=256,
        ),
        img_size=size,
    ),
    head=dict(
        in_channels=96,
        deconv_out_channels=(64, 64),
        conv_out_channels=(64,),
        conv_kernel_sizes=(1,),
        decoder=dict(input_size=size[::-1], heatmap_size=(48, 64), sigma=2),
        # Heatmaps that start near 0: with the large random ones of the usual init a
        # model without pretrained weights first learns to predict nothing, and stays.
        init_cfg=dict(
            type='Kaiming',
            layer=['Conv2d', 'ConvTranspose2d'],
            override=dict(type='Normal', name='conv_pose', std=0.001),
        ),
    ),
)
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='mmpose.GetBBoxCenterScale', padding=1.25),
    dict(type='mmpose.RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='sapiens2_mm.Sapiens2TopdownAffine', input_size=size[::-1]),
    dict(type='mmpose.PackPoseInputs', pack_transformed=True),
]
test_pipeline = _base_.test_pipeline
test_pipeline[2].input_size = size[::-1]
_base_.tta_pipeline[1].transforms[2][0].input_size = size[::-1]
train_dataloader = dict(
    batch_size=8,
    num_workers=2,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
val_dataloader = dict(
    num_workers=2,
    batch_size=8,
    dataset=dict(data_root=data_root, pipeline=test_pipeline),
)
test_dataloader = val_dataloader
train_cfg = dict(max_iters=1100, val_interval=1100)
optim_wrapper = dict(optimizer=dict(lr=4e-3, betas=(0.9, 0.98), weight_decay=0.05))
_base_.param_scheduler[1].end = 1100
default_hooks = dict(checkpoint=dict(interval=550, save_best='coco/AP', rule='greater'))
