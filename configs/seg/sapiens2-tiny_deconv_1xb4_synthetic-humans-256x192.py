# The tiny model on 8 images of synthetic people, without augmentation.
_base_ = './sapiens2-tiny_deconv_1xb4_humans29-256x192.py'
default_scope = 'mmseg'
indices = list(range(8))  # images of either split; None takes all
train_dataloader = dict(dataset=dict(indices=indices))
val_dataloader = dict(dataset=dict(indices=indices))
test_dataloader = val_dataloader
