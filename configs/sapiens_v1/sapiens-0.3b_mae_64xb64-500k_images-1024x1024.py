# Masked reconstruction as in the first Sapiens: one square view, three quarters of its
# patches masked one by one, no teacher. The length of the released runs is unknown.
_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens_v1_pretrain.py',
    '../_base_/datasets/pretrain_1024x768.py',
    '../_base_/schedules/pretrain_500k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/pretrain'
train_pipeline = _base_.train_pipeline
train_pipeline[0].views = [
    dict(num_views=1, size=(1024, 1024), area=(0.2, 1.0), aspect_jitter=4 / 3)
]
train_dataloader = dict(
    batch_size=64,
    num_workers=8,
    pin_memory=True,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
optim_wrapper = dict(optimizer=dict(lr=2.4e-3), clip_grad=dict(max_norm=1.0))
auto_scale_lr = dict(base_batch_size=4096)
