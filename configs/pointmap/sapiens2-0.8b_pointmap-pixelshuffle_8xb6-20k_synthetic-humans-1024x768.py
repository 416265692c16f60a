_base_ = ['sapiens2-0.4b_pointmap-pixelshuffle_8xb8-20k_synthetic-humans-1024x768.py']
model = dict(backbone=dict(arch='sapiens2_0.8b'), decode_head=dict(in_channels=1280))
train_dataloader = dict(batch_size=6)
optim_wrapper = dict(paramwise_cfg=dict(layer_decay_rate=0.85))
auto_scale_lr = dict(base_batch_size=48)
