_base_ = ['sapiens2-0.4b_mae-contrast-continue_8xb16-20k_images-1024x768.py']
recompute = 'full'
model = dict(
    backbone=dict(
        arch='sapiens2_1b',
        init_cfg=dict(checkpoint='hf://facebook/sapiens2-pretrain-1b'),
    ),
)
