_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pose.py',
    '../_base_/datasets/humans308_1024x768.py',
    '../_base_/schedules/probe_5k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans'
model = dict(
    backbone=dict(frozen_stages=24),
    neck=dict(type='sapiens2_mm.ProbeNeck', in_channels=1024),
    head=dict(
        in_channels=256,
        deconv_out_channels=(),
        deconv_kernel_sizes=(),
        conv_out_channels=(),
        conv_kernel_sizes=(),
    ),
    test_cfg=dict(flip_test=False),
)
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='mmpose.GetBBoxCenterScale', padding=1.25),
    dict(type='mmpose.RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='sapiens2_mm.Sapiens2TopdownAffine', input_size=(768, 1024)),
    dict(type='mmpose.PackPoseInputs', pack_transformed=True),
]
train_dataloader = dict(
    batch_size=4, dataset=dict(data_root=data_root, pipeline=train_pipeline)
)
val_dataloader = dict(batch_size=4, dataset=dict(data_root=data_root))
test_dataloader = val_dataloader
val_evaluator = [
    dict(type='sapiens2_mm.KeypointOKSMetric'),
    dict(type='mmpose.PCKAccuracy', thr=0.05, norm_item='bbox'),
]
test_evaluator = val_evaluator
