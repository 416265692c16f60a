# The 4K model: a window tokenizer reduces 4096x3072 to the token grid of 1024x768, and
# the decoder reconstructs at 2048x1536, 32x32 pixels per token.
_base_ = [
    '../_base_/default_runtime.py',
    '../_base_/models/sapiens2_pretrain.py',
    '../_base_/datasets/pretrain_1024x768.py',
    '../_base_/schedules/pretrain_500k.py',
]
default_scope = 'sapiens2_mm'
data_root = 'data/pretrain'
model = dict(
    backbone=dict(
        arch='sapiens2_1b', img_size=(4096, 3072), use_tokenizer=True, with_cp=True
    ),
    neck=dict(out_channels=3072),
    reconstruction_loss=dict(target_scale=0.5),
)
train_pipeline = [
    dict(
        type='sapiens2_mm.MultiViewCrop',
        views=[
            dict(num_views=2, size=(4096, 3072), area=(0.5, 1.0)),
            dict(
                num_views=4,
                size=(2048, 1536),
                area=(0.2, 0.7),
                jitter_prob=0.8,
                grayscale_prob=0.2,
                blur_prob=0.5,
                solarize_prob=0.2,
            ),
        ],
    ),
    dict(type='mmpretrain.PackInputs', meta_keys=('img_path', 'skipped', 'position')),
]
train_dataloader = dict(
    batch_size=16,
    dataset=dict(data_root=data_root, min_short_side=2048, pipeline=train_pipeline),
)
auto_scale_lr = dict(base_batch_size=2048)
