"""A tiny pose head, an estimator around it, and samples for them; needs mmpose."""

import numpy as np
from mmpose.datasets.transforms import GenerateTarget, PackPoseInputs

K = 5
INPUT, HEATMAP = (48, 64), (12, 16)  # width, height
CODEC = dict(
    type='mmpose.UDPHeatmap', input_size=INPUT, heatmap_size=HEATMAP, sigma=1.5
)
FLIP_INDICES = [0, 2, 1, 4, 3]


def head_cfg(**kwargs):
    cfg = dict(
        type='sapiens2_mm.Sapiens2PoseHead',
        in_channels=32,
        out_channels=K,
        deconv_out_channels=(16, 8),
        deconv_kernel_sizes=(4, 4),
        conv_out_channels=(8,),
        conv_kernel_sizes=(1,),
        decoder=CODEC,
    )
    return {**cfg, **kwargs}


def estimator_cfg(head=None, **kwargs):
    return dict(
        type='mmpose.TopdownPoseEstimator',
        _scope_='mmpose',
        data_preprocessor=dict(type='mmpose.PoseDataPreprocessor'),
        backbone=dict(
            type='sapiens2_mm.Sapiens2',
            arch=dict(
                embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64
            ),
            img_size=(64, 48),
            out_type='featmap',
        ),
        head=head or head_cfg(),
        **kwargs,
    )


def table(num_keypoints):
    """Keypoint metainfo: one point in the middle, the others in mirrored pairs."""
    names = ['nose'] + [
        f'{side}_{i}' for i in range(num_keypoints // 2) for side in ('left', 'right')
    ]

    def swap(name):
        side, _, rest = name.partition('_')
        return {'left': f'right_{rest}', 'right': f'left_{rest}'}.get(side, '')

    return dict(
        dataset_name='test',
        keypoint_info={
            i: dict(name=name, id=i, color=[0, 0, 0], type='', swap=swap(name))
            for i, name in enumerate(names)
        },
        skeleton_info={},
        joint_weights=[1.0] * num_keypoints,
        sigmas=[0.05] * num_keypoints,
    )


def packed(keypoints, visible, classic=False):
    """A sample as it leaves the training pipeline."""
    results = dict(
        img=np.zeros((64, 48, 3), np.uint8),
        bbox=np.float32([[0, 0, 48, 64]]),
        bbox_score=np.ones(1, np.float32),
        keypoints=keypoints,
        keypoints_visible=visible,
        transformed_keypoints=keypoints,
        dataset_keypoint_weights=np.ones((1, K), np.float32),
        input_size=INPUT,
        input_center=np.float32([24, 32]),
        input_scale=np.float32([48, 64]),
        flip_indices=FLIP_INDICES,
    )
    if classic:
        results = GenerateTarget(encoder=CODEC)(results)
    return PackPoseInputs(pack_transformed=True)(results)['data_samples']
