# 308 keypoints of one person, cropped by the official pipeline.
_base_ = 'synthetic_humans.py'
# What mmpose's MMPoseInferencer asks a config for.
dataset_type = 'sapiens2_mm.Humans308Dataset'
data_mode = 'topdown'
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='mmpose.GetBBoxCenterScale', padding=1.25),
    dict(type='mmpose.RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='sapiens2_mm.Sapiens2RandomHalfBody', prob=0.3),
    dict(
        type='mmpose.RandomBBoxTransform',
        shift_factor=0.16,
        shift_prob=0.3,
        scale_factor=(0.5, 1.5),
        scale_prob=1.0,
        rotate_factor=80.0,
        rotate_prob=0.6,
    ),
    dict(
        type='sapiens2_mm.Sapiens2TopdownAffine', input_size=(768, 1024)
    ),  # (width, height)
    dict(
        type='RandomApply',
        transforms=[dict(type='sapiens2_mm.PosePhotometricDistortion')],
        prob=0.8,
    ),
    dict(type='sapiens2_mm.RandomBlur', kind='box', prob=0.1),
    dict(type='sapiens2_mm.RandomBlur', kind='median', prob=0.1),
    dict(type='sapiens2_mm.CoarseDropout', prob=1.0, extent=(0.2, 0.4)),
    # The head makes the heatmaps, on its device, from the transformed keypoints.
    dict(type='mmpose.PackPoseInputs', pack_transformed=True),
]
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='mmpose.GetBBoxCenterScale', padding=1.25),
    dict(type='sapiens2_mm.Sapiens2TopdownAffine', input_size=(768, 1024)),
    dict(type='mmpose.PackPoseInputs'),
]
# Each box a little tighter and wider too, each crop mirrored too: six views.
tta_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(
        type='TestTimeAug',
        transforms=[
            [
                dict(type='mmpose.GetBBoxCenterScale', padding=padding)
                for padding in (1.25, 1.125, 1.375)
            ],
            [
                dict(type='mmpose.RandomFlip', prob=0.0),
                dict(type='mmpose.RandomFlip', prob=1.0),
            ],
            [dict(type='sapiens2_mm.Sapiens2TopdownAffine', input_size=(768, 1024))],
            [dict(type='mmpose.PackPoseInputs')],
        ],
    ),
]
train_dataloader = dict(
    batch_size=6,
    dataset=dict(type='sapiens2_mm.Humans308Dataset', pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=6,
    sampler=dict(round_up=False),
    dataset=dict(type='sapiens2_mm.Humans308Dataset', pipeline=test_pipeline),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='sapiens2_mm.KeypointOKSMetric')
test_evaluator = val_evaluator
