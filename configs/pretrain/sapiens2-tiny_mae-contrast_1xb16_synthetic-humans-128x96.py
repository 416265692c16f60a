# Small enough for a CPU; for trying the tools, not for use. The images are those of
# `python -m projects.synthetic_humans data/synthetic_humans_128x96 --size 128x96
# --num-train 2000 --num-val 200`.
_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pretrain.py',
    '../_base_/models/tiny_pretrain.py',
    '../_base_/datasets/pretrain_1024x768.py',
    '../_base_/schedules/pretrain_500k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans_128x96'
model = dict(
    backbone=_base_.tiny_backbone,
    neck=dict(out_channels=192, embed_dims=64, num_layers=2, num_heads=4),
    head=dict(hidden_dims=256, bottleneck_dims=64, num_prototypes=1024),
)
# With patches of 8 pixels a local view has as many tokens as are visible in a masked
# global one, 48.
train_pipeline = _base_.train_pipeline
train_pipeline[0].views[0].size = _base_.tiny_backbone.img_size
train_pipeline[0].views[1].size = (64, 48)
train_dataloader = dict(
    batch_size=16,
    num_workers=1,
    dataset=dict(
        data_root=data_root,
        ann_file='annotations/train.json',
        pipeline=train_pipeline,
    ),
)
train_cfg = dict(max_iters=1000)
optim_wrapper = dict(
    _delete_=True,
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=3e-3, betas=(0.9, 0.95), weight_decay=0.05),
    constructor='sapiens2_mm.LayerDecayOptimWrapperConstructor',
    paramwise_cfg=dict(
        layer_decay_rate=1.0,
        no_decay_keys=('cls_token', 'storage_tokens', 'mask_token'),
    ),
    clip_grad=dict(max_norm=5.0, norm_type=2),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=100),
    dict(type='CosineAnnealingLR', eta_min=1e-7, by_epoch=False, begin=100, end=1000),
]
_base_.custom_hooks[0].patience = 300  # before it warns of a dead contrast
_base_.custom_hooks[2].interval = 250  # pictures of the reconstruction
default_hooks = dict(logger=dict(interval=20), checkpoint=dict(interval=250))
