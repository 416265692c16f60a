_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_matting.py',
    '../_base_/datasets/synthetic_humans_matting_1024x768.py',
    '../_base_/schedules/layer_decay.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans'
train_dataloader = dict(batch_size=8, dataset=dict(data_root=data_root))
val_dataloader = dict(dataset=dict(data_root=data_root))
test_dataloader = val_dataloader
_base_.train_cfg.max_iters = _base_.param_scheduler[1].end = 14_550
optim_wrapper = dict(
    optimizer=dict(lr=5e-4),
    paramwise_cfg=dict(layer_decay_rate=0.8),
    clip_grad=dict(max_norm=2.0),
)
auto_scale_lr = dict(base_batch_size=64)
default_hooks = dict(checkpoint=dict(save_best='matting/alpha_mae', rule='less'))
