_base_ = ['sapiens-0.3b_udp-heatmap_8xb64-61k_coco-1024x768.py']
model = dict(backbone=dict(arch='sapiens_0.6b'), head=dict(in_channels=1280))
