# Hooks, logging and environment of every run. Intervals count iterations.
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    throughput=dict(type='sapiens2_mm.ThroughputHook'),
    logger=dict(type='LoggerHook', interval=50, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    metainfo_check=dict(type='sapiens2_mm.MetainfoCheckHook'),
    load=dict(type='sapiens2_mm.LoadCheckpointHook'),
    non_finite_loss=dict(type='sapiens2_mm.NonFiniteLossHook', patience=3),
    random_state=dict(type='sapiens2_mm.RandomStateHook'),
    checkpoint=dict(
        type='sapiens2_mm.AtomicCheckpointHook',
        by_epoch=False,
        interval=1000,
        max_keep_ckpts=3,
    ),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='sapiens2_mm.VisualizationHook', enable=False),
)
log_processor = dict(by_epoch=False)
log_level = 'INFO'
randomness = dict(seed=0, diff_rank_seed=True)
env_cfg = dict(
    cudnn_benchmark=True,
    mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
    dist_cfg=dict(backend='nccl'),
)
vis_backends = [dict(type='LocalVisBackend')]
load_from = None
resume = False
