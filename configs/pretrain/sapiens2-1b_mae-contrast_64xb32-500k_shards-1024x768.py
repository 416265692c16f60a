# As the config of an image folder, from tar shards in the WebDataset layout.
_base_ = ['sapiens2-1b_mae-contrast_64xb32-500k_images-1024x768.py']
train_dataloader = dict(
    sampler=None,
    dataset=dict(
        _delete_=True,
        type='sapiens2_mm.TarShardDataset',
        shards='data/pretrain_shards',
        shuffle_buffer=1000,
        shards_per_block=4,
        min_short_side=384,
        pipeline=_base_.train_pipeline,
    ),
)
