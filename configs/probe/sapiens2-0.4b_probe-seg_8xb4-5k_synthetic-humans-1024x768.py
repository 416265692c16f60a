_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_seg.py',
    '../_base_/datasets/humans29_1024x768.py',
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
        deconv_out_channels=(),
        deconv_kernel_sizes=(),
        conv_out_channels=(),
        conv_kernel_sizes=(),
    ),
)
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadSegAnnotations'),
    dict(type='sapiens2_mm.AreaCubicResize', size=(1024, 768)),
    dict(type='sapiens2_mm.SegFlip', prob=0.5),
    dict(type='mmseg.PackSegInputs', meta_keys=_base_.meta_keys),
]
train_dataloader = dict(
    batch_size=4, dataset=dict(data_root=data_root, pipeline=train_pipeline)
)
val_dataloader = dict(batch_size=4, dataset=dict(data_root=data_root))
test_dataloader = val_dataloader
val_evaluator = dict(nan_to_num=None)  # a class that does not occur is left out
test_evaluator = val_evaluator
