# Heatmaps have a quarter of the sides of the input, as at 1024x768, by two more
# deconvolutions; sigma and blur cover the same part of them.
_base_ = ['sapiens2-1b_udp-heatmap_8xb7-20k_humans308-1024x768.py']
size = (3072, 4096)  # (width, height)
recompute = 'full'
model = dict(
    backbone=dict(img_size=(4096, 3072), use_tokenizer=True),
    head=dict(
        deconv_out_channels=(1536, 1024, 512, 256),
        deconv_kernel_sizes=(4, 4, 4, 4),
        conv_out_channels=(256, 256),
        conv_kernel_sizes=(1, 1),
        decoder=dict(
            input_size=size, heatmap_size=(768, 1024), sigma=24, blur_kernel_size=43
        ),
    ),
)
train_pipeline, test_pipeline = _base_.train_pipeline, _base_.test_pipeline
tta_pipeline = _base_.tta_pipeline
train_pipeline[5].input_size = test_pipeline[2].input_size = size
tta_pipeline[1].transforms[2][0].input_size = size
train_dataloader = dict(batch_size=1, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=1, dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
auto_scale_lr = dict(base_batch_size=8)
