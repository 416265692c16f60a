# As the first Sapiens trained: warm-up over 400 iterations, then linear decay to 0.
_base_ = 'layer_decay.py'
train_cfg = dict(max_iters=20_000)
optim_wrapper = dict(
    optimizer=dict(lr=5e-4),
    paramwise_cfg=dict(layer_decay_rate=0.85),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=400),
    dict(type='PolyLR', power=1.0, eta_min=0.0, by_epoch=False, begin=400, end=20_000),
]
