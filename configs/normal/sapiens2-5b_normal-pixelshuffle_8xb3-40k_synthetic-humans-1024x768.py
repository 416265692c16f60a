_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_normal.py',
    '../_base_/datasets/synthetic_humans_normal_1024x768.py',
    '../_base_/schedules/layer_decay_40k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/synthetic_humans'
model = dict(
    backbone=dict(arch='sapiens2_5b'),
    decode_head=dict(
        in_channels=2432,
        upsample_channels=(1536, 768, 512, 256),
        conv_out_channels=(128, 64, 32),
    ),
)
train_dataloader = dict(batch_size=3, dataset=dict(data_root=data_root))
val_dataloader = dict(dataset=dict(data_root=data_root))
test_dataloader = val_dataloader
optim_wrapper = dict(
    optimizer=dict(lr=1e-4),
    paramwise_cfg=dict(layer_decay_rate=0.94),
    clip_grad=dict(max_norm=4.0),
)
auto_scale_lr = dict(base_batch_size=24)
default_hooks = dict(checkpoint=dict(save_best='normal/normal_mae', rule='less'))
