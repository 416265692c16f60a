# The 28 body parts of the first Sapiens, in masks that hold the 29 of Sapiens2: glasses
# are ignored. Masks that hold the 28 need dataset.source = 'sapiens_v1_28'.
_base_ = 'humans29_1024x768.py'
metainfo = dict(
    classes=(
        *('Background', 'Apparel', 'Face_Neck', 'Hair'),
        *('Left_Foot', 'Left_Hand', 'Left_Lower_Arm', 'Left_Lower_Leg'),
        *('Left_Shoe', 'Left_Sock', 'Left_Upper_Arm', 'Left_Upper_Leg'),
        'Lower_Clothing',
        *('Right_Foot', 'Right_Hand', 'Right_Lower_Arm', 'Right_Lower_Leg'),
        *('Right_Shoe', 'Right_Sock', 'Right_Upper_Arm', 'Right_Upper_Leg'),
        *('Torso', 'Upper_Clothing'),
        *('Lower_Lip', 'Upper_Lip', 'Lower_Teeth', 'Upper_Teeth', 'Tongue'),
    ),
)
resize = dict(type='mmseg.Resize', scale=(768, 1024), keep_ratio=False)  # bilinear
pack = _base_.train_pipeline[-1]
train_pipeline = [
    *_base_.train_pipeline[:3],  # image, mask, background
    dict(
        type='RandomResize',
        scale=(768, 1024),  # (width, height)
        ratio_range=(0.2, 2.0),
        keep_ratio=True,
        resize_type='mmseg.Resize',
    ),
    dict(type='sapiens2_mm.SegRandomCrop', crop_size=(1024, 768), cat_max_ratio=0.75),
    resize,
    dict(type='mmseg.RandomRotate', prob=0.5, degree=45, pad_val=0, seg_pad_val=0),
    dict(type='sapiens2_mm.SegFlip', prob=0.5),
    dict(type='sapiens2_mm.SegPhotometricDistortion'),
    pack,
]
test_pipeline = [dict(type='sapiens2_mm.LoadImage'), resize, pack]
val_pipeline = [
    dict(type='LoadImageFromFile', _scope_='sapiens2_mm'),
    resize,
    dict(type='LoadAnnotations', _scope_='sapiens2_mm'),
    pack,
]
_base_.tta_pipeline[1].transforms[0] = [resize]
train_dataloader = dict(dataset=dict(metainfo=metainfo, pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(metainfo=metainfo, pipeline=val_pipeline))
test_dataloader = val_dataloader
