# The pretrained backbone alone: a feature map of the last block, 64x64 at this size.
default_scope = 'sapiens2_mm'
model = dict(
    type='sapiens2_mm.SapiensV1',
    arch='sapiens_0.3b',
    img_size=(1024, 1024),
    with_cls_token=True,
)
