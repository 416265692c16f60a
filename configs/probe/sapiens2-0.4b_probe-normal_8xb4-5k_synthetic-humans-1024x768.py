_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_normal.py',
    '../_base_/datasets/synthetic_humans_normal_1024x768.py',
    '../_base_/schedules/probe_5k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans'
recompute = 'none'  # nothing is kept of a frozen encoder
model = dict(
    backbone=dict(frozen_stages=24),
    neck=dict(type='sapiens2_mm.ProbeNeck', in_channels=1024),
    decode_head=dict(
        in_channels=256,
        upsample_channels=(),
        conv_out_channels=(),
        conv_kernel_sizes=(),
    ),
)
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadDenseAnnotations', fields=['normal']),
    dict(type='sapiens2_mm.DenseRandomFlip', prob=0.5),
    dict(type='sapiens2_mm.Letterbox', size=(1024, 768)),
    dict(type='sapiens2_mm.PackDenseInputs'),
]
train_dataloader = dict(
    batch_size=4, dataset=dict(data_root=data_root, pipeline=train_pipeline)
)
val_dataloader = dict(batch_size=4, dataset=dict(data_root=data_root))
test_dataloader = val_dataloader
