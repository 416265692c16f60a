# Labels and logits have half the sides of the input, by a fifth deconvolution.
_base_ = ['sapiens2-1b_deconv_8xb8-20k_humans29-1024x768.py']
size = (4096, 3072)  # (height, width)
model = dict(
    backbone=dict(img_size=size, use_tokenizer=True),
    decode_head=dict(
        deconv_out_channels=(512, 256, 128, 64, 32),
        deconv_kernel_sizes=(4, 4, 4, 4, 4),
        conv_out_channels=(32, 32),
    ),
)
train_pipeline, tta_pipeline = _base_.train_pipeline, _base_.tta_pipeline
test_pipeline, val_pipeline = _base_.test_pipeline, _base_.val_pipeline
train_pipeline[3].scale = train_pipeline[4].transforms[1].size = (3072, 4096)
train_pipeline[4].transforms[0].crop_size = size
train_pipeline[10].update(size=size, label_stride=2)
test_pipeline[1].size = val_pipeline[1].size = size
tta_pipeline[1].transforms[0][0].size = size
train_dataloader = dict(batch_size=1, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=1, dataset=dict(pipeline=val_pipeline))
test_dataloader = val_dataloader
auto_scale_lr = dict(base_batch_size=8)
