_base_ = ['sapiens-0.3b_normal-deconv_8xb2-20k_synthetic-humans-1024x768.py']
model = dict(backbone=dict(arch='sapiens_1b'), decode_head=dict(in_channels=1536))
