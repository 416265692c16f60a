# CIHP validation: 20 classes of clothes and parts, as those of our classes that they
# are or stand for. The metric counts the parts that CIHP does not tell apart as one.
_base_ = 'test_loader.py'
default_scope = 'mmseg'
guide = (
    'CIHP is on the page "Look into Person" (LIP) of the HCP lab of Sun Yat-sen '
    'University, as instance-level_human_parsing.zip. Below data_root (data/cihp) '
    'there must be Validation/Images/NAME.jpg and Validation/Category_ids/NAME.png'
)
test_pipeline = [
    dict(type='sapiens2_mm.LoadImage'),
    dict(type='sapiens2_mm.AreaCubicResize', size=(1024, 768)),
    dict(type='sapiens2_mm.LoadSegAnnotations'),
    dict(
        type='mmseg.PackSegInputs',
        meta_keys=(
            *('img_path', 'seg_map_path', 'ori_shape', 'img_shape', 'pad_shape'),
            *('scale_factor', 'flip', 'flip_direction', 'reduce_zero_label'),
        ),
    ),
]
label_map = {
    0: 0,  # background
    1: 1,  # hat: apparel
    2: 4,  # hair
    3: 1,  # glove: apparel
    4: 2,  # sunglasses: eyeglass; ignored for the 28 classes, which have none
    5: 23,  # upper clothes
    6: 255,  # dress: upper and lower clothing
    7: 23,  # coat: upper clothing
    8: 10,  # socks: left sock, for both
    9: 13,  # trousers: lower clothing
    10: 22,  # skin of the torso
    11: 1,  # scarf: apparel
    12: 13,  # skirt: lower clothing
    13: 3,  # face
    14: 7,  # left arm: lower arm, for all of it
    15: 16,  # right arm
    16: 8,  # left leg: lower leg, for all of it
    17: 17,  # right leg
    18: 9,  # left shoe
    19: 18,  # right shoe
}
merged_classes = dict(
    Face=(
        *('Face_Neck', 'Lower_Lip', 'Upper_Lip', 'Lower_Teeth', 'Upper_Teeth'),
        'Tongue',
    ),
    Left_Arm=('Left_Upper_Arm', 'Left_Lower_Arm', 'Left_Hand'),
    Right_Arm=('Right_Upper_Arm', 'Right_Lower_Arm', 'Right_Hand'),
    Left_Leg=('Left_Upper_Leg', 'Left_Lower_Leg', 'Left_Foot'),
    Right_Leg=('Right_Upper_Leg', 'Right_Lower_Leg', 'Right_Foot'),
    Sock=('Left_Sock', 'Right_Sock'),
)
test_dataloader = dict(
    dataset=dict(
        type='sapiens2_mm.Humans29Dataset',
        data_root='data/cihp',
        data_prefix=dict(
            img_path='Validation/Images', seg_map_path='Validation/Category_ids'
        ),
        label_map=label_map,
        guide=guide,
        pipeline=test_pipeline,
    )
)
test_evaluator = dict(
    type='sapiens2_mm.Sapiens2IoUMetric', merged_classes=merged_classes
)
