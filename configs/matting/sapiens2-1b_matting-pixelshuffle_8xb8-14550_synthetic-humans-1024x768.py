_base_ = ['sapiens2-0.4b_matting-pixelshuffle_8xb8-14550_synthetic-humans-1024x768.py']
model = dict(backbone=dict(arch='sapiens2_1b'), decode_head=dict(in_channels=1536))
optim_wrapper = dict(
    paramwise_cfg=dict(layer_decay_rate=0.9), clip_grad=dict(max_norm=4.0)
)
