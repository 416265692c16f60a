# A whole downstream config: inherit ours, plug in an own loss.
_base_ = [
    'sapiens2_mm::pose/sapiens2-tiny_udp-heatmap_1xb8_synthetic-humans-256x192.py'
]
default_scope = 'acme'  # safe: all inherited names carry their library's prefix
custom_imports = dict(imports=['acme'], allow_failed_imports=False)
model = dict(
    head=dict(loss=dict(_delete_=True, type='acme.WingLoss', loss_weight=10.0))
)
