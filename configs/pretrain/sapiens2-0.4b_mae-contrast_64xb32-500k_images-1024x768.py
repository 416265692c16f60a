_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pretrain.py',
    '../_base_/datasets/pretrain_1024x768.py',
    '../_base_/schedules/pretrain_500k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/pretrain'
train_dataloader = dict(
    batch_size=32,
    num_workers=8,
    pin_memory=True,
    dataset=dict(data_root=data_root, min_short_side=384),
)
auto_scale_lr = dict(base_batch_size=2048)
# For probing: max_keep_ckpts does not count these.
default_hooks = dict(
    checkpoint=dict(keep=[100_000, 200_000, 300_000, 400_000]),
)
