# Loaders of the synthetic people, the default data of all tasks. A task adds the class
# of its dataset, its pipelines and its metric.
train_dataloader = dict(
    batch_size=8,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(data_root='data/synthetic_humans', ann_file='annotations/train.json'),
)
val_dataloader = dict(
    batch_size=8,
    num_workers=4,
    persistent_workers=True,
    drop_last=False,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        data_root='data/synthetic_humans',
        ann_file='annotations/val.json',
        test_mode=True,
    ),
)
test_dataloader = val_dataloader
