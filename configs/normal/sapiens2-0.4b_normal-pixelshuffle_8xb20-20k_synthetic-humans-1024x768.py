_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_normal.py',
    '../_base_/datasets/synthetic_humans_normal_1024x768.py',
    '../_base_/schedules/layer_decay.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans'
train_dataloader = dict(batch_size=20, dataset=dict(data_root=data_root))
val_dataloader = dict(dataset=dict(data_root=data_root))
test_dataloader = val_dataloader
_base_.train_cfg.max_iters = _base_.param_scheduler[1].end = 20_000
optim_wrapper = dict(
    optimizer=dict(lr=5e-4),
    paramwise_cfg=dict(layer_decay_rate=0.8),
    clip_grad=dict(max_norm=2.0),
)
auto_scale_lr = dict(base_batch_size=160)
default_hooks = dict(checkpoint=dict(save_best='normal/normal_mae', rule='less'))
