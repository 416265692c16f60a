_base_ = ['sapiens2-0.4b_albedo-pixelshuffle_8xb20-20k_synthetic-humans-1024x768.py']
model = dict(backbone=dict(arch='sapiens2_1b'), decode_head=dict(in_channels=1536))
train_dataloader = dict(batch_size=7)
_base_.train_cfg.max_iters = _base_.param_scheduler[1].end = 40_000
optim_wrapper = dict(
    paramwise_cfg=dict(layer_decay_rate=0.9), clip_grad=dict(max_norm=4.0)
)
auto_scale_lr = dict(base_batch_size=56)
