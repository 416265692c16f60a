# Targets and output have half the sides of the input; the fifth stage reaches them.
_base_ = ['sapiens2-1b_normal-pixelshuffle_8xb7-40k_synthetic-humans-1024x768.py']
size = (4096, 3072)  # (height, width)
model = dict(
    backbone=dict(img_size=size, use_tokenizer=True),
    decode_head=dict(upsample_channels=(768, 512, 256, 128, 64)),
)
train_pipeline, test_pipeline = _base_.train_pipeline, _base_.test_pipeline
train_pipeline[7].update(size=size, map_stride=2)
test_pipeline[2].size = size
train_dataloader = dict(batch_size=1, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=1, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
auto_scale_lr = dict(base_batch_size=8)
