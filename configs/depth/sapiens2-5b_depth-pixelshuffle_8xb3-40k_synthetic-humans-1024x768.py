_base_ = ['sapiens2-1b_depth-pixelshuffle_8xb7-40k_synthetic-humans-1024x768.py']
model = dict(
    backbone=dict(arch='sapiens2_5b'),
    decode_head=dict(
        in_channels=2432,
        upsample_channels=(1536, 768, 512, 256),
        conv_out_channels=(128, 64, 32),
    ),
)
train_dataloader = dict(batch_size=3)
optim_wrapper = dict(optimizer=dict(lr=1e-4), paramwise_cfg=dict(layer_decay_rate=0.94))
auto_scale_lr = dict(base_batch_size=24)
