_base_ = 'layer_decay_10k.py'
train_cfg = dict(max_iters=50_000)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=500),
    dict(type='PolyLR', power=1.0, eta_min=0.0, by_epoch=False, begin=500, end=50_000),
]
