_base_ = ['sapiens2-0.4b_mae-contrast_64xb32-500k_images-1024x768.py']
model = dict(backbone=dict(arch='sapiens2_5b', with_cp=True))
train_dataloader = dict(batch_size=8)
