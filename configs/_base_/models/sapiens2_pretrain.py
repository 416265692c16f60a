# Student, decoder, prototype head and losses of pretraining: 0.4b at 1024x768.
model = dict(
    type='sapiens2_mm.Sapiens2Pretrain',
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
    ),
    backbone=dict(
        type='sapiens2_mm.Sapiens2',
        arch='sapiens2_0.4b',
        img_size=(1024, 768),
        out_type='raw',
        rope_dtype='fp32',  # 'bf16' to continue from released weights
        # At the 1e-4 of the released layout a class token starts the same for every
        # image, and the contrast dies before attention has grown.
        layer_scale_init_value=1.0,
    ),
    neck=dict(type='sapiens2_mm.MAEDecoder', embed_dims=512, num_layers=8),
    head=dict(
        type='sapiens2_mm.PrototypeHead',
        hidden_dims=2048,
        bottleneck_dims=256,
        num_prototypes=65536,
        prototype_std=None,  # unit length: targets differ by image from the start
    ),
    mask_generator=dict(
        type='sapiens2_mm.BlockPatchMask', mask_ratio=0.75, block_prob=0.4
    ),
    reconstruction_loss=dict(type='sapiens2_mm.PatchReconstructionLoss'),
    contrast_loss=dict(
        type='sapiens2_mm.ViewContrastLoss',
        student_temperature=0.1,
        teacher_temperature=(0.065, 0.07),
        warmup_iters=1000,
        loss_weight=0.4,
    ),
    koleo_loss=dict(type='sapiens2_mm.KoLeoLoss', reduction='mean', loss_weight=0.04),
    centering=dict(type='sapiens2_mm.EMACentering', momentum=0.9),
    teacher_momentum=0.992,
    num_global_views=2,
    num_local_views=4,
)
custom_hooks = [
    dict(type='sapiens2_mm.TeacherUpdateHook'),
    dict(type='sapiens2_mm.PretrainDataHook'),
    dict(type='sapiens2_mm.ReconstructionHook', interval=1000),
    dict(type='sapiens2_mm.ExportBackboneHook'),
    dict(type='sapiens2_mm.LossGradientHook', interval=200),
]
visualizer = dict(
    type='mmengine.Visualizer', vis_backends=[dict(type='LocalVisBackend')]
)
