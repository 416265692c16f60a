# A model small enough to learn a handful of synthetic people on two CPU cores. It is
# for trying the tools, not for use: it sees 32 images, almost without augmentation.
# The canonical focal length is the width of the input, as it is at 1024x768.
_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pointmap.py',
    '../_base_/datasets/synthetic_humans_pointmap_1024x768.py',
    '../_base_/schedules/tiny_600.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans_256x192'
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=128,
            num_layers=4,
            num_heads=4,
            feedforward_channels=256,
        ),
        img_size=(256, 192),
        with_cp=False,
    ),
    decode_head=dict(
        in_channels=128,
        upsample_channels=(64, 48, 32, 16),
        conv_out_channels=(8,),
        conv_kernel_sizes=(3,),
        feature_size=(16, 12),
        scale_conv_out_channels=(64, 32),
        scale_hidden_channels=(64,),
    ),
)
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['depth'], with_camera=True),
    dict(type='sapiens2_mm.DenseRandomFlip', prob=0.3),
    dict(type='sapiens2_mm.Letterbox', size=(256, 192)),
    dict(type='sapiens2_mm.PointmapTarget', canonical_focal=192.0),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['depth'], with_camera=True),
    dict(
        type='sapiens2_mm.Letterbox', size=(256, 192), rounding='floor', with_maps=False
    ),
    dict(type='sapiens2_mm.PointmapTarget', canonical_focal=192.0),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
val_dataloader = dict(
    num_workers=1, dataset=dict(data_root=data_root, pipeline=test_pipeline)
)
test_dataloader = val_dataloader
optim_wrapper = dict(optimizer=dict(lr=2e-3))
default_hooks = dict(
    logger=dict(interval=20),
    checkpoint=dict(interval=300, save_best='pointmap/l2_mean', rule='less'),
)
