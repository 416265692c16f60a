# Masked reconstruction of the first Sapiens: 0.3b at 1024x1024.
_base_ = 'sapiens2_pretrain.py'
model = dict(
    backbone=dict(
        _delete_=True,
        type='sapiens2_mm.SapiensV1',
        arch='sapiens_0.3b',
        img_size=(1024, 1024),
        with_cls_token=True,
        out_type='raw',
        fixed_positions=True,
    ),
    neck=dict(use_cls_token=True, norm_eps=1e-6),
    mask_generator=dict(block_prob=0.0),
    head=None,
    contrast_loss=None,
    koleo_loss=None,
    centering=None,
    num_global_views=1,
    num_local_views=0,
)
