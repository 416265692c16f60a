# Two global and four local views of the images of a folder, at any depth.
train_pipeline = [
    dict(
        type='sapiens2_mm.MultiViewCrop',
        views=[
            dict(num_views=2, size=(1024, 768), area=(0.5, 1.0)),
            dict(
                num_views=4,
                size=(512, 384),
                area=(0.2, 0.7),
                jitter_prob=0.8,
                grayscale_prob=0.2,
                blur_prob=0.5,
                solarize_prob=0.2,
            ),
        ],
    ),
    dict(type='sapiens2_mm.DrawTokenMasks'),
    dict(
        type='mmpretrain.PackInputs',
        algorithm_keys=('ids_keep',),
        meta_keys=('img_path', 'skipped', 'position'),
    ),
]
train_dataloader = dict(
    batch_size=32,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='sapiens2_mm.DrawSampler', shuffle=True),
    collate_fn=dict(type='default_collate'),
    dataset=dict(
        type='sapiens2_mm.UnlabeledImageDataset',
        data_root='data/pretrain',
        pipeline=train_pipeline,
    ),
)
