_base_ = ['sapiens-0.3b_udp-heatmap_8xb4-20k_humans308-1024x768.py']
model = dict(backbone=dict(arch='sapiens_1b'), head=dict(in_channels=1536))
optim_wrapper = dict(paramwise_cfg=dict(layer_decay_rate=0.95))
