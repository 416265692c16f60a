_base_ = [
    'sapiens2-0.4b_probe-pose_8xb4-5k_synthetic-humans-1024x768.py',
    '../_base_/models/tiny_probe.py',
]
data_root = 'data/synthetic_humans_128x96'
size = _base_.tiny_model.backbone.img_size
model = dict(
    head=dict(decoder=dict(input_size=size[::-1], heatmap_size=(24, 32), sigma=1.5)),
    **_base_.tiny_model,
)
train_pipeline = _base_.train_pipeline
train_pipeline[3].input_size = size[::-1]
test_pipeline = _base_.test_pipeline
test_pipeline[2].input_size = size[::-1]
_base_.tta_pipeline[1].transforms[2][0].input_size = size[::-1]
train_dataloader = dict(
    batch_size=32,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=32,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=test_pipeline),
)
test_dataloader = val_dataloader
train_cfg = dict(max_iters=500, val_interval=500)
_base_.param_scheduler[0].end = 500
default_hooks = dict(logger=dict(interval=20))
