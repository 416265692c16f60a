# The 4K model: a window tokenizer reduces 4096x3072 to the token grid of 1024x768, and
# the decoder reconstructs at 2048x1536, 32x32 pixels per token.
_base_ = ['sapiens2-1b_mae-contrast_64xb32-500k_images-1024x768.py']
size = (4096, 3072)  # (height, width) of a global view; local ones have half of it
model = dict(
    backbone=dict(img_size=size, use_tokenizer=True),
    neck=dict(out_channels=3072),
    reconstruction_loss=dict(target_scale=0.5),
)
train_pipeline = _base_.train_pipeline
train_pipeline[0].views[0].size = size
train_pipeline[0].views[1].size = (2048, 1536)
# A batch of 8-bit views is 1.8 GB; a worker holds two of them.
train_dataloader = dict(
    batch_size=16,
    num_workers=4,
    prefetch_factor=1,
    dataset=dict(min_short_side=2048, pipeline=train_pipeline),
)
