_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens_v1_pose.py',
    '../_base_/datasets/sapiens_v1_humans308_1024x768.py',
    '../_base_/schedules/sapiens_v1_pose.py',
]
default_scope = 'mmpose'
data_root = 'data/synthetic_humans'
model = dict(
    head=dict(
        loss=dict(_delete_=True, type='sapiens2_mm.KeypointOHKMMSELoss', topk=128)
    )
)
train_dataloader = dict(batch_size=4, dataset=dict(data_root=data_root))
val_dataloader = dict(dataset=dict(data_root=data_root))
test_dataloader = val_dataloader
optim_wrapper = dict(optimizer=dict(lr=5e-5))
auto_scale_lr = dict(base_batch_size=512)
default_hooks = dict(checkpoint=dict(save_best='coco/AP', rule='greater'))
