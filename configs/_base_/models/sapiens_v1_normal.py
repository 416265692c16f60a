# Surface normals of the first Sapiens: 0.3b at 1024x768.
_base_ = 'sapiens2_dense.py'
model = dict(
    backbone=dict(
        _delete_=True,
        type='sapiens2_mm.SapiensV1',
        arch='sapiens_0.3b',
        img_size=(1024, 768),
        patch_padding=2,
    ),
    decode_head=dict(
        _delete_=True,
        type='sapiens2_mm.SapiensV1NormalHead',
        in_channels=1024,
        deconv_out_channels=(768, 768, 768),
        conv_out_channels=(768, 768, 768),
        loss_decode=[
            dict(type='sapiens2_mm.NormalCosineLoss'),
            dict(type='sapiens2_mm.MaskedL1Loss'),
        ],
    ),
)
visualizer = dict(type='sapiens2_mm.NormalVisualizer')
