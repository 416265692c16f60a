# A short last stage of the 4K model, reconstruction alone at 2048x1536: give the
# checkpoint of the first stage as load_from. Length and rate are our choice.
_base_ = ['sapiens2-1b-4k_mae-contrast_128xb16-500k_images-4096x3072.py']
model = dict(
    reconstruction_loss=dict(target_scale=0.5),
    head=None,
    contrast_loss=None,
    koleo_loss=None,
    centering=None,
    num_local_views=0,
)
train_pipeline = _base_.train_pipeline
del train_pipeline[0].views[1]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
_base_.train_cfg.max_iters = _base_.param_scheduler[1].end = 20_000
optim_wrapper = dict(optimizer=dict(lr=2e-5))
