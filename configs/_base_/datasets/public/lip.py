# LIP validation: the classes of CIHP, but overalls in place of the skin of the torso.
_base_ = 'cihp.py'
guide = (
    'LIP is on the page "Look into Person" (LIP) of the HCP lab of Sun Yat-sen '
    'University, as TrainVal_images.zip and TrainVal_parsing_annotations.zip. Below '
    'data_root (data/lip) there must be TrainVal_images/val_images/NAME.jpg and '
    'TrainVal_parsing_annotations/val_segmentations/NAME.png'
)
test_dataloader = dict(
    dataset=dict(
        data_root='data/lip',
        data_prefix=dict(
            img_path='TrainVal_images/val_images',
            seg_map_path='TrainVal_parsing_annotations/val_segmentations',
        ),
        label_map={10: 255},  # overalls: upper and lower clothing
        guide=guide,
    )
)
