# AdamW: 1000 iterations of linear warm-up, then cosine to 1e-7. No weight decay on
# norms, biases, layer scale, tokens and positions.
train_cfg = dict(type='sapiens2_mm.SeekingTrainLoop', max_iters=500_000)
optim_wrapper = dict(
    type='sapiens2_mm.AutocastOptimWrapper',
    optimizer=dict(
        type='AdamW', lr=1e-4, betas=(0.9, 0.95), weight_decay=0.05, fused=True
    ),
    constructor='sapiens2_mm.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(
        layer_decay_rate=1.0,
        no_decay_keys=(
            'cls_token',
            'storage_tokens',
            'mask_token',
            'tokenizer.w_cls',
            'tokenizer.local_pos_embed',
        ),
    ),
    clip_grad=dict(max_norm=5.0, norm_type=2),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=1000),
    dict(
        type='CosineAnnealingLR',
        eta_min=1e-7,
        by_epoch=False,
        begin=1000,
        end=500_000,
    ),
]
