# Masked reconstruction alone: no teacher, no local views.
_base_ = ['sapiens2-tiny_mae-contrast_1xb16_synthetic-humans-128x96.py']
model = dict(
    head=None,
    contrast_loss=None,
    koleo_loss=None,
    centering=None,
    num_local_views=0,
)
train_pipeline = [
    dict(
        type='sapiens2_mm.MultiViewCrop',
        views=[dict(num_views=2, size=(128, 96), area=(0.5, 1.0))],
    ),
    dict(type='mmpretrain.PackInputs', meta_keys=('img_path', 'skipped', 'position')),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
