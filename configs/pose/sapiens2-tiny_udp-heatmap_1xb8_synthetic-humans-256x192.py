# The tiny model on 128 images of synthetic people and their mirror images.
_base_ = './sapiens2-tiny_udp-heatmap_1xb8_humans308-256x192.py'
default_scope = 'mmpose'
data_root = 'data/synthetic_humans_256x192_128'
# With equal weights the 238 points of the face rule the features, and a model without
# pretrained weights finds no limb before it has learned them.
joint_weights = [
    *[10.0] * 15,  # body
    *[6.0] * 6,  # feet
    *[4.0] * 20 + [10.0],  # right hand, its wrist
    *[4.0] * 20 + [10.0],  # left hand, its wrist
    *[6.0] * 7,  # more points of the body
    *[1.0] * 238,  # face
]
model = dict(
    head=dict(
        # No hands on a portrait: the data label all that is visible.
        loss=dict(absent_weight=[0.1 * weight for weight in joint_weights])
    )
)
train_dataloader = dict(
    dataset=dict(data_root=data_root, metainfo=dict(joint_weights=joint_weights))
)
val_dataloader = dict(dataset=dict(data_root=data_root))
test_dataloader = val_dataloader
