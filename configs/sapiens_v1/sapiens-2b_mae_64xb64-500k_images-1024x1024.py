_base_ = ['sapiens-0.3b_mae_64xb64-500k_images-1024x1024.py']
recompute = 'full'
model = dict(backbone=dict(arch='sapiens_2b'))
