# Continue from the released encoder on own images: rotary tables as released, decoder
# and prototype head from scratch.
_base_ = ['sapiens2-0.4b_mae-contrast_64xb32-500k_images-1024x768.py']
model = dict(
    backbone=dict(
        rope_dtype='bf16',
        init_cfg=dict(
            type='Pretrained', checkpoint='hf://facebook/sapiens2-pretrain-0.4b'
        ),
    ),
)
train_dataloader = dict(batch_size=16)
_base_.train_cfg.max_iters = _base_.param_scheduler[1].end = 20_000
optim_wrapper = dict(optimizer=dict(lr=2e-5))
auto_scale_lr = dict(base_batch_size=128)
