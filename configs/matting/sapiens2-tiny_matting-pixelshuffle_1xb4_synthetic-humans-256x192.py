# A model small enough to learn a handful of synthetic people on two CPU cores. It is
# for trying the tools, not for use: it sees 32 images, almost without augmentation.
_base_ = [
    '../_base_/models/sapiens2_matting.py',
    '../_base_/models/tiny_dense.py',
    '../_base_/datasets/synthetic_humans_matting_1024x768.py',
    '../_base_/schedules/tiny.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans_256x192'
recompute = 'none'
model = _base_.tiny_model
size = _base_.tiny_model.backbone.img_size
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadMatte', binary=True),
    dict(type='sapiens2_mm.DenseRandomFlip', prob=0.3),
    dict(type='sapiens2_mm.DenseResize', size=size),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
test_pipeline = _base_.test_pipeline
test_pipeline[2].size = size
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
val_dataloader = dict(
    num_workers=1, dataset=dict(data_root=data_root, pipeline=test_pipeline)
)
test_dataloader = val_dataloader
default_hooks = dict(checkpoint=dict(save_best='matting/alpha_mae', rule='less'))
