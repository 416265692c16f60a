# AdamW with layer decay: linear warm-up over 500 iterations, then linear decay to 0.
# layer_decay_rate and max_norm depend on the model size and are set in the leaf. For
# another length set train_cfg.max_iters and param_scheduler[1].end alike.
train_cfg = dict(by_epoch=False, max_iters=10_000, val_interval=1000)
val_cfg = dict()
test_cfg = dict()
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(
        type='AdamW', lr=5e-4, betas=(0.9, 0.999), weight_decay=0.1, fused=True
    ),
    constructor='sapiens2_mm.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.8),
    clip_grad=dict(max_norm=2.0, norm_type=2),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=500),
    dict(type='PolyLR', power=1.0, eta_min=0.0, by_epoch=False, begin=500, end=10_000),
]
