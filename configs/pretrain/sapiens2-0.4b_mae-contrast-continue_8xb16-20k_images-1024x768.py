# Continue from the released encoder on own images: rotary tables as released, decoder
# and prototype head from scratch.
_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pretrain.py',
    '../_base_/datasets/pretrain_1024x768.py',
    '../_base_/schedules/pretrain_500k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/pretrain'
model = dict(
    backbone=dict(
        arch='sapiens2_0.4b',
        rope_dtype='bf16',
        init_cfg=dict(
            type='Pretrained',
            checkpoint='hf://facebook/sapiens2-pretrain-0.4b',
        ),
    ),
)
train_dataloader = dict(batch_size=16, dataset=dict(data_root=data_root))
train_cfg = dict(max_iters=20_000)
optim_wrapper = dict(optimizer=dict(lr=2e-5))
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=1000),
    dict(
        type='CosineAnnealingLR', eta_min=1e-7, by_epoch=False, begin=1000, end=20_000
    ),
]
auto_scale_lr = dict(base_batch_size=128)
