# Depth of Hi4D, rendered from its meshes by its cameras; a folder for each sequence.
_base_ = 'thuman2_depth.py'
guide = (
    'Hi4D is on the page "Hi4D: 4D Instance Segmentation of Close Human Interaction",'
    ' on request; render its meshes by its cameras. Below data_root (data/hi4d) there'
    ' must be PAIR/ACTION/images/CAMERA/FRAME.jpg, '
    'PAIR/ACTION/seg/img_seg_mask/CAMERA/all/FRAME.png (as in the release), '
    'PAIR/ACTION/depth/CAMERA/FRAME.npy (meters along Z, float, 0 where unknown) and '
    'PAIR/ACTION/normal/CAMERA/FRAME.npy (X right, Y down, Z forward), of the frames '
    'to be tested, such as pair00/dance00/images/4/000010.jpg'
)
test_dataloader = dict(
    dataset=dict(
        data_root='data/hi4d',
        data_prefix=dict(
            img='*/*/images/*/*',
            mask='*/*/seg/img_seg_mask/*/all/*',
            depth='*/*/depth/*/*',
            normal='*/*/normal/*/*',
        ),
        guide=guide,
    )
)
