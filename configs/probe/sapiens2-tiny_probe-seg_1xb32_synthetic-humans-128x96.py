_base_ = [
    'sapiens2-0.4b_probe-seg_8xb4-5k_synthetic-humans-1024x768.py',
    '../_base_/models/tiny_probe.py',
]
data_root = 'data/synthetic_humans_128x96'
model = _base_.tiny_model
size = _base_.tiny_model.backbone.img_size
train_pipeline = _base_.train_pipeline
train_pipeline[2].size = size
val_pipeline = _base_.val_pipeline
val_pipeline[1].size = size
_base_.test_pipeline[1].size = size
_base_.tta_pipeline[1].transforms[0][0].size = size
train_dataloader = dict(
    batch_size=32,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=32,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=val_pipeline),
)
test_dataloader = val_dataloader
train_cfg = dict(max_iters=500, val_interval=500)
_base_.param_scheduler[0].end = 500
default_hooks = dict(logger=dict(interval=20))
