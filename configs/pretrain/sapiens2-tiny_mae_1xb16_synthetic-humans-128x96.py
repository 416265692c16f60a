# Masked reconstruction alone: no teacher, no local views.
_base_ = ['sapiens2-tiny_mae-contrast_1xb16_synthetic-humans-128x96.py']
model = dict(
    head=None,
    contrast_loss=None,
    koleo_loss=None,
    centering=None,
    num_local_views=0,
)
train_pipeline = _base_.train_pipeline
del train_pipeline[0].views[1]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
