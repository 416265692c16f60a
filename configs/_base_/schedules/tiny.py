# 600 iterations for a tiny model without pretrained weights: all layers learn alike.
_base_ = ['../default_runtime.py', 'layer_decay.py']
train_cfg = dict(max_iters=600, val_interval=300)
optim_wrapper = dict(optimizer=dict(lr=1e-3), paramwise_cfg=dict(layer_decay_rate=1.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=50),
    dict(type='PolyLR', power=1.0, eta_min=0.0, by_epoch=False, begin=50, end=600),
]
default_hooks = dict(logger=dict(interval=20), checkpoint=dict(interval=300))
