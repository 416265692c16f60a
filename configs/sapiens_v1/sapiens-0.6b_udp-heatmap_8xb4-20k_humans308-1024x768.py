_base_ = ['sapiens-0.3b_udp-heatmap_8xb4-20k_humans308-1024x768.py']
model = dict(
    backbone=dict(arch='sapiens_0.6b'),
    head=dict(
        in_channels=1280,
        loss=dict(_delete_=True, type='sapiens2_mm.KeypointMSELoss'),
    ),
)
