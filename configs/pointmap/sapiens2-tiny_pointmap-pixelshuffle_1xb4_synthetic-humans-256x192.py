# A model small enough to learn a handful of synthetic people on two CPU cores. It is
# for trying the tools, not for use: it sees 32 images, almost without augmentation.
# The canonical focal length is the width of the input, as it is at 1024x768.
_base_ = [
    '../_base_/models/sapiens2_pointmap.py',
    '../_base_/models/tiny_dense.py',
    '../_base_/datasets/synthetic_humans_pointmap_1024x768.py',
    '../_base_/schedules/tiny.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans_256x192'
recompute = 'none'
model = dict(
    backbone=_base_.tiny_model.backbone,
    decode_head=dict(
        feature_size=(16, 12),
        scale_conv_out_channels=(64, 32),
        scale_hidden_channels=(64,),
        **_base_.tiny_model.decode_head,
    ),
)
size = _base_.tiny_model.backbone.img_size
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['depth'], with_camera=True),
    dict(type='sapiens2_mm.DenseRandomFlip', prob=0.3),
    dict(type='sapiens2_mm.Letterbox', size=size),
    dict(type='sapiens2_mm.PointmapTarget', canonical_focal=192.0),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
test_pipeline = _base_.test_pipeline
test_pipeline[2].size = size
test_pipeline[3].canonical_focal = 192.0
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
val_dataloader = dict(
    num_workers=1, dataset=dict(data_root=data_root, pipeline=test_pipeline)
)
test_dataloader = val_dataloader
optim_wrapper = dict(optimizer=dict(lr=2e-3))
default_hooks = dict(checkpoint=dict(save_best='pointmap/l2_mean', rule='less'))
