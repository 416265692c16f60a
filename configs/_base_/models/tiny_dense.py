# What the tiny models of all dense tasks change in the released ones.
tiny_model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=128,
            num_layers=4,
            num_heads=4,
            feedforward_channels=256,
        ),
        img_size=(256, 192),
    ),
    decode_head=dict(
        in_channels=128,
        upsample_channels=(64, 48, 32, 16),
        conv_out_channels=(8,),
        conv_kernel_sizes=(3,),
    ),
)
