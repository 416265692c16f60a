_base_ = ['sapiens2-0.4b_mae-contrast_64xb32-500k_images-1024x768.py']
recompute = 'full'
model = dict(backbone=dict(arch='sapiens2_5b'))
train_dataloader = dict(batch_size=8)
