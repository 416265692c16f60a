_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_matting.py',
    '../_base_/datasets/synthetic_humans_matting_1024x768.py',
    '../_base_/schedules/layer_decay_10k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans'
model = dict(
    backbone=dict(arch='sapiens2_5b'),
    decode_head=dict(in_channels=2432),
)
train_dataloader = dict(batch_size=8, dataset=dict(data_root=data_root))
val_dataloader = dict(dataset=dict(data_root=data_root))
test_dataloader = val_dataloader
train_cfg = dict(max_iters=14_550)
optim_wrapper = dict(
    optimizer=dict(lr=1e-4),
    paramwise_cfg=dict(layer_decay_rate=0.94),
    clip_grad=dict(max_norm=4.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=500),
    dict(type='PolyLR', power=1.0, eta_min=0.0, by_epoch=False, begin=500, end=14_550),
]
auto_scale_lr = dict(base_batch_size=64)
default_hooks = dict(checkpoint=dict(save_best='matting/alpha_mae', rule='less'))
