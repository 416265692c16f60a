_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_seg.py',
    '../_base_/datasets/humans29_1024x768.py',
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
        in_channels=256,
        deconv_out_channels=(),
        deconv_kernel_sizes=(),
        conv_out_channels=(),
        conv_kernel_sizes=(),
    ),
)
meta_keys = (
    *('img_path', 'seg_map_path', 'ori_shape', 'img_shape', 'pad_shape'),
    *('scale_factor', 'flip', 'flip_direction', 'flip_pairs', 'reduce_zero_label'),
)
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadSegAnnotations'),
    dict(type='sapiens2_mm.AreaCubicResize', size=(128, 96)),
    dict(type='sapiens2_mm.SegFlip', prob=0.5),
    dict(type='mmseg.PackSegInputs', meta_keys=meta_keys),
]
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.AreaCubicResize', size=(128, 96)),
    dict(type='sapiens2_mm.LoadSegAnnotations'),
    dict(type='mmseg.PackSegInputs', meta_keys=meta_keys),
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
val_evaluator = dict(nan_to_num=None)  # a class that does not occur is left out
test_evaluator = val_evaluator
train_cfg = dict(max_iters=500, val_interval=500)
param_scheduler = [
    dict(type='CosineAnnealingLR', eta_min=0.0, by_epoch=False, begin=0, end=500)
]
default_hooks = dict(logger=dict(interval=20))
