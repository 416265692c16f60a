# The pretrained backbone alone: a feature map of the last block, 64x48 at this size.
default_scope = 'sapiens2_mm'
model = dict(
    type='sapiens2_mm.Sapiens2',
    arch='sapiens2_5b',
    img_size=(1024, 768),
    out_type='featmap',
)
