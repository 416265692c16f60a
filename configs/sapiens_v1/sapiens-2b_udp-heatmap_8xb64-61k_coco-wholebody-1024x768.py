_base_ = ['sapiens-0.3b_udp-heatmap_8xb64-61k_coco-wholebody-1024x768.py']
model = dict(backbone=dict(arch='sapiens_2b'), head=dict(in_channels=1920))
optim_wrapper = dict(paramwise_cfg=dict(layer_decay_rate=0.85))
