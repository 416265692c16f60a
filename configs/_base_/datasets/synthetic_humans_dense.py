# Loaders of all dense tasks.
_base_ = 'synthetic_humans.py'
train_dataloader = dict(dataset=dict(type='sapiens2_mm.SyntheticHumansDenseDataset'))
val_dataloader = dict(
    sampler=dict(round_up=False),
    dataset=dict(type='sapiens2_mm.SyntheticHumansDenseDataset'),
)
test_dataloader = val_dataloader
