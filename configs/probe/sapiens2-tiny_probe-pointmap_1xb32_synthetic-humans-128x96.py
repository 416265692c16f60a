_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pointmap.py',
    '../_base_/datasets/synthetic_humans_pointmap_1024x768.py',
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
        with_cp=False,
    ),
    # A quarter of the picture's size, as with patches of 16 pixels.
    neck=dict(type='sapiens2_mm.ProbeNeck', in_channels=96, scale_factor=2),
    decode_head=dict(
        _delete_=True,
        type='sapiens2_mm.ProbePointmapHead',
        in_channels=256,
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
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['depth'], with_camera=True),
    dict(type='sapiens2_mm.DenseRandomFlip', prob=0.5),
    dict(type='sapiens2_mm.Letterbox', size=(128, 96)),
    dict(type='sapiens2_mm.PointmapTarget'),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['depth'], with_camera=True),
    dict(
        type='sapiens2_mm.Letterbox', size=(128, 96), rounding='floor', with_maps=False
    ),
    dict(type='sapiens2_mm.PointmapTarget'),
    dict(type='sapiens2_mm.PackDenseInputs'),
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
train_cfg = dict(max_iters=500, val_interval=500)
param_scheduler = [
    dict(type='CosineAnnealingLR', eta_min=0.0, by_epoch=False, begin=0, end=500)
]
default_hooks = dict(logger=dict(interval=20))
