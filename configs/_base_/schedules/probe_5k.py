# AdamW for a light decoder on a frozen encoder: cosine to 0, no warm-up.
train_cfg = dict(by_epoch=False, max_iters=5000, val_interval=5000)
val_cfg = dict()
test_cfg = dict()
optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-3, betas=(0.9, 0.999), weight_decay=0.05),
    constructor='sapiens2_mm.LayerDecayOptimWrapperConstructor',
    clip_grad=None,
)
param_scheduler = [
    dict(type='CosineAnnealingLR', eta_min=0.0, by_epoch=False, begin=0, end=5000)
]
