# The encoder of tiny pretraining, frozen: what its probes change in those of 0.4b.
_base_ = 'tiny_pretrain.py'
tiny_model = dict(
    backbone=dict(rope_dtype='fp32', frozen_stages=4, **_base_.tiny_backbone),
    # A quarter of the picture's size, as with patches of 16 pixels.
    neck=dict(in_channels=96, scale_factor=2),
)
