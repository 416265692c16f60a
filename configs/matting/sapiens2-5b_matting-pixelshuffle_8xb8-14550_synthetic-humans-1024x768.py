_base_ = ['sapiens2-0.4b_matting-pixelshuffle_8xb8-14550_synthetic-humans-1024x768.py']
model = dict(backbone=dict(arch='sapiens2_5b'), decode_head=dict(in_channels=2432))
optim_wrapper = dict(
    optimizer=dict(lr=1e-4),
    paramwise_cfg=dict(layer_decay_rate=0.94),
    clip_grad=dict(max_norm=4.0),
)
