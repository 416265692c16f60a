# 29 body parts, whole images at 1024x768 (height x width), the official pipelines.
_base_ = 'synthetic_humans.py'
meta_keys = (
    *('img_path', 'seg_map_path', 'ori_shape', 'img_shape', 'pad_shape'),
    *('scale_factor', 'flip', 'flip_direction', 'flip_pairs', 'reduce_zero_label'),
)
train_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.LoadSegAnnotations'),
    # Give a folder of photos without people; None draws fields of random colors.
    dict(type='sapiens2_mm.RandomBackground', background_dir=None, prob=0.8),
    dict(
        type='RandomResize',
        scale=(768, 1024),  # (width, height)
        ratio_range=(0.4, 2.0),
        keep_ratio=True,
        resize_type='mmseg.Resize',
    ),
    dict(
        type='RandomApply',
        prob=0.3,
        transforms=[
            dict(
                type='sapiens2_mm.SegRandomCrop',
                crop_size=(1024, 768),  # (height, width)
                cat_max_ratio=0.75,
            ),
            dict(
                type='Pad',
                size=(768, 1024),  # (width, height)
                pad_val=dict(img=0, seg=255),
            ),
        ],
    ),
    dict(type='sapiens2_mm.RandomGaussianBlur', prob=0.3),
    dict(type='sapiens2_mm.RandomGaussianNoise', prob=0.3),
    # What rotation brings in is black and background, not ignored.
    dict(type='mmseg.RandomRotate', prob=0.5, degree=60, pad_val=0, seg_pad_val=0),
    dict(type='sapiens2_mm.SegFlip', prob=0.5),
    dict(type='sapiens2_mm.SegPhotometricDistortion'),
    dict(type='sapiens2_mm.AreaCubicResize', size=(1024, 768)),
    dict(type='sapiens2_mm.FilterForeground', min_ratio=0.01),
    dict(type='mmseg.PackSegInputs', meta_keys=meta_keys),
]
# Prediction needs no labels. Labels of an evaluation keep their own size.
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.AreaCubicResize', size=(1024, 768)),
    dict(type='mmseg.PackSegInputs', meta_keys=meta_keys),
]
# MMSegInferencer looks for the names LoadImageFromFile and LoadAnnotations; ours.
val_pipeline = [
    dict(type='LoadImageFromFile', _scope_='sapiens2_mm'),
    dict(type='sapiens2_mm.AreaCubicResize', size=(1024, 768)),
    dict(type='LoadAnnotations', _scope_='sapiens2_mm'),
    dict(type='mmseg.PackSegInputs', meta_keys=meta_keys),
]
tta_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='sapiens2_mm.AreaCubicResize', size=(1024, 768))],
            [
                dict(type='sapiens2_mm.SegFlip', prob=0.0),
                dict(type='sapiens2_mm.SegFlip', prob=1.0),
            ],
            [dict(type='sapiens2_mm.LoadSegAnnotations')],
            [dict(type='mmseg.PackSegInputs', meta_keys=meta_keys)],
        ],
    ),
]
train_dataloader = dict(
    batch_size=12,
    dataset=dict(
        type='sapiens2_mm.Humans29Dataset',
        data_prefix=dict(img_path='rgb', seg_map_path='seg'),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=12,
    dataset=dict(
        type='sapiens2_mm.Humans29Dataset',
        data_prefix=dict(img_path='rgb', seg_map_path='seg'),
        pipeline=val_pipeline,
    ),
)
test_dataloader = val_dataloader
# The released rule: a class that never occurs counts as 0. Set nan_to_num=None for
# mmseg's rule, which leaves it out.
val_evaluator = dict(
    type='sapiens2_mm.Sapiens2IoUMetric', iou_metrics=['mIoU'], nan_to_num=0
)
test_evaluator = val_evaluator
