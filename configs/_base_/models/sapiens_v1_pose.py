# Pose of the first Sapiens: 0.3b at 1024x768, 308 keypoints.
_base_ = 'sapiens2_pose.py'
model = dict(
    backbone=dict(
        _delete_=True,
        type='sapiens2_mm.SapiensV1',
        arch='sapiens_0.3b',
        img_size=(1024, 768),
        patch_padding=2,
    ),
    head=dict(
        deconv_out_channels=(768, 768),
        conv_out_channels=(768, 768),
        conv_kernel_sizes=(1, 1),
        loss=dict(loss_weight=1.0),
    ),
)
