_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens_v1_seg.py',
    '../_base_/datasets/humans28_1024x768.py',
    '../_base_/schedules/sapiens_v1.py',
]
default_scope = 'mmseg'
data_root = 'data/synthetic_humans'
train_dataloader = dict(batch_size=2, dataset=dict(data_root=data_root))
val_dataloader = dict(dataset=dict(data_root=data_root))
test_dataloader = val_dataloader
auto_scale_lr = dict(base_batch_size=16)
default_hooks = dict(checkpoint=dict(save_best='mIoU', rule='greater'))
