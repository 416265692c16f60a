_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pointmap.py',
    '../_base_/datasets/synthetic_humans_pointmap_1024x768.py',
    '../_base_/schedules/probe_5k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans'
model = dict(
    backbone=dict(
        frozen_stages=24,
        with_cp=False,
    ),
    neck=dict(type='sapiens2_mm.ProbeNeck', in_channels=1024),
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
    dict(type='sapiens2_mm.Letterbox', size=(1024, 768)),
    dict(type='sapiens2_mm.PointmapTarget'),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['depth'], with_camera=True),
    dict(
        type='sapiens2_mm.Letterbox',
        size=(1024, 768),
        rounding='floor',
        with_maps=False,
    ),
    dict(type='sapiens2_mm.PointmapTarget'),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
train_dataloader = dict(
    batch_size=4,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=4,
    dataset=dict(data_root=data_root, pipeline=test_pipeline),
)
test_dataloader = val_dataloader
