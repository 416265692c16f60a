# As the config of an image folder, from tar shards.
_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pretrain.py',
    '../_base_/datasets/pretrain_shards_1024x768.py',
    '../_base_/schedules/pretrain_500k.py',
]
default_scope = 'sapiens2_mm'
shards = 'data/pretrain_shards'
model = dict(backbone=dict(arch='sapiens2_1b', with_cp=True))
train_dataloader = dict(batch_size=32, dataset=dict(shards=shards))
auto_scale_lr = dict(base_batch_size=2048)
