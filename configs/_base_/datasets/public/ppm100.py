# PPM-100, 100 portraits.
_base_ = 'p3m10k.py'
guide = (
    'PPM-100 is on the GitHub page "PPM" of ZHKKKe. Below data_root (data/ppm100) '
    'there must be image/NAME.jpg and matte/NAME.jpg'
)
test_dataloader = dict(
    dataset=dict(
        data_root='data/ppm100',
        data_prefix=dict(img='image', alpha='matte'),
        guide=guide,
    )
)
