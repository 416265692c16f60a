# Body parts of the first Sapiens: 0.3b at 1024x768, 28 classes.
_base_ = 'sapiens2_seg.py'
model = dict(
    backbone=dict(
        _delete_=True,
        type='sapiens2_mm.SapiensV1',
        arch='sapiens_0.3b',
        img_size=(1024, 768),
        patch_padding='corner',
    ),
    decode_head=dict(
        num_classes=28,
        deconv_out_channels=(768, 768, 768),
        deconv_kernel_sizes=(4, 4, 4),
        conv_out_channels=(768, 768, 768),
        conv_kernel_sizes=(1, 1, 1),
        dropout_ratio=0.1,
        loss_decode=dict(
            _delete_=True,
            type='sapiens2_mm.WeightedCrossEntropyLoss',
            # In the order of the classes: background, apparel, face and neck, hair.
            class_weight=[
                *[0.1, 10, 3, 2],
                *[4, 4, 2, 2, 6, 10, 3, 3],  # left foot to left upper leg
                1,  # lower clothing
                *[4, 4, 2, 2, 6, 10, 3, 3],  # right foot to right upper leg
                *[1, 1],  # torso, upper clothing
                *[10, 10, 10, 10, 10],  # lips, teeth, tongue
            ],
        ),
    ),
)
