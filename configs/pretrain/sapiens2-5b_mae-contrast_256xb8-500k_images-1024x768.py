_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pretrain.py',
    '../_base_/datasets/pretrain_1024x768.py',
    '../_base_/schedules/pretrain_500k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/pretrain'
model = dict(backbone=dict(arch='sapiens2_5b', with_cp=True))
train_dataloader = dict(batch_size=8, dataset=dict(data_root=data_root))
auto_scale_lr = dict(base_batch_size=2048)
