# As the pose models of the first Sapiens trained: warm-up over 500 iterations, a tenth
# of the rate after 81 % and again after 95 % of the run.
_base_ = 'sapiens_v1.py'
param_scheduler = [
    dict(type='LinearLR', start_factor=1e-3, by_epoch=False, begin=0, end=500),
    dict(
        type='MultiStepLR',
        milestones=[16_200, 19_000],
        gamma=0.1,
        by_epoch=False,
        begin=500,
        end=20_000,
    ),
]
