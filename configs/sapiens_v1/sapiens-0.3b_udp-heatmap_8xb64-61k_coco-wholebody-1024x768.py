# 133 keypoints. 61,000 iterations are 210 epochs of the 149,813 people of COCO.
_base_ = ['sapiens-0.3b_udp-heatmap_8xb4-20k_humans308-1024x768.py']
data_root = 'data/coco'
model = dict(
    head=dict(
        out_channels=133,
        loss=dict(_delete_=True, type='sapiens2_mm.KeypointMSELoss'),
    )
)
train_dataloader = dict(
    batch_size=64,
    dataset=dict(
        type='sapiens2_mm.Sapiens2CocoWholeBodyDataset',
        data_root=data_root,
        ann_file='annotations/coco_wholebody_train_v1.0.json',
        data_prefix=dict(img='train2017/'),
    ),
)
val_dataloader = dict(
    dataset=dict(
        type='sapiens2_mm.Sapiens2CocoWholeBodyDataset',
        data_root=data_root,
        ann_file='annotations/coco_wholebody_val_v1.0.json',
        data_prefix=dict(img='val2017/'),
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(_delete_=True, type='sapiens2_mm.Sapiens2CocoWholeBodyMetric')
test_evaluator = val_evaluator
_base_.train_cfg.max_iters = _base_.param_scheduler[1].end = 61_000
_base_.param_scheduler[1].milestones = [49_400, 58_100]
optim_wrapper = dict(optimizer=dict(lr=5e-4), paramwise_cfg=dict(layer_decay_rate=0.75))
default_hooks = dict(checkpoint=dict(save_best='coco-wholebody/AP'))
