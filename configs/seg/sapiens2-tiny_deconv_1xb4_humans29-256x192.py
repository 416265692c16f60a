# A model small enough for two CPU cores: for trying the tools, not for use.
_base_ = [
    '../_base_/models/sapiens2_seg.py',
    '../_base_/datasets/humans29_1024x768.py',
    '../_base_/schedules/tiny.py',
]
default_scope = 'mmseg'
data_root = 'data/synthetic_humans_256x192'
size = (256, 192)  # (height, width)
recompute = 'none'
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=192,
            num_layers=6,
            num_heads=6,
            feedforward_channels=512,
        ),
        img_size=size,
    ),
    decode_head=dict(
        in_channels=192,
        deconv_out_channels=(64, 48, 32, 16),
        conv_out_channels=(16,),
        conv_kernel_sizes=(1,),
        loss_decode=[
            dict(
                type='sapiens2_mm.WeightedCrossEntropyLoss',
                # Milder than the official weights, which need a long training.
                class_weight=[0.5, *[2.0] * 12, 1.0, *[2.0] * 8, 1.0, 1.0, *[2.0] * 5],
            ),
            dict(type='sapiens2_mm.Sapiens2DiceLoss'),
        ],
    ),
)
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadSegAnnotations'),
    dict(type='sapiens2_mm.AreaCubicResize', size=size),
    dict(type='mmseg.PackSegInputs', meta_keys=_base_.meta_keys),
]
test_pipeline = _base_.test_pipeline
test_pipeline[1].size = size
val_pipeline = _base_.val_pipeline
val_pipeline[1].size = size
_base_.tta_pipeline[1].transforms[0][0].size = size
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=8,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=val_pipeline),
)
test_dataloader = val_dataloader
val_evaluator = dict(nan_to_num=None)  # few images: leave absent classes out
test_evaluator = val_evaluator
optim_wrapper = dict(optimizer=dict(lr=4e-3))
default_hooks = dict(checkpoint=dict(save_best='mIoU', rule='greater'))
