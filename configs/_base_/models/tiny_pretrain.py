# The encoder of the tiny pretraining runs.
tiny_backbone = dict(
    arch=dict(
        _delete_=True,
        embed_dims=96,
        num_layers=4,
        num_heads=3,
        feedforward_channels=192,
    ),
    img_size=(128, 96),
    patch_size=8,
)
