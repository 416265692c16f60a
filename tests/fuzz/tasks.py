"""A little data set and a config of each task, and options worth spoiling."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 64, 48
SIZE = (128, 96)
NAN = float('nan')
ODD_NUMBERS = [0, -1, NAN, 1e9, 'x', None]
KEYPOINTS = ('nose', 'left_hand', 'right_hand', 'left_foot', 'right_foot')
CLASSES = ('background', 'left_sleeve', 'right_sleeve')


class Task(NamedTuple):
    """One task.

    Attributes:
        write: fills a folder with data.
        dataset: config of the training data, without ``data_root``.
        model: config of ``tiny_models``, (task, channels); None to load only.
        options: ``path.to.option`` of the dataset config -> odd values.
    """

    write: Callable[[Path], None]
    dataset: dict[str, Any]
    model: tuple[str, int | None] | None
    options: dict[str, list]


def _noise(seed: int, *channels: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (HEIGHT, WIDTH, *channels), np.uint8)


def _picture(path: Path, array: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def _write_pose(root: Path) -> None:
    images, annotations = [], []
    for index in range(2):
        _picture(root / f'{index}.png', _noise(index, 3))
        images.append(
            dict(id=index, file_name=f'{index}.png', width=WIDTH, height=HEIGHT)
        )
        points = [[10 + 5 * k, 8 + 9 * k, 2] for k in range(5)]
        annotations.append(
            dict(
                id=index,
                image_id=index,
                category_id=1,
                bbox=[4, 6, 40, 52],
                area=2080,
                iscrowd=0,
                keypoints=np.ravel(points).tolist(),
            )
        )
    categories = [dict(id=1, name='person', keypoints=list(KEYPOINTS))]
    content = dict(images=images, annotations=annotations, categories=categories)
    (root / 'train.json').write_text(json.dumps(content))


def _keypoint_metainfo() -> dict:
    swap = dict(left='right', right='left')
    info = {}
    for index, name in enumerate(KEYPOINTS):
        side, _, part = name.partition('_')
        info[index] = dict(
            name=name,
            swap=f'{swap[side]}_{part}' if part else '',
            type='upper' if index < 3 else 'lower',
            color=[255, 0, 0],
        )
    return dict(dataset_name='fuzz', keypoint_info=info, sigmas=[0.05] * 5)


_POSE = Task(
    _write_pose,
    dict(
        type='sapiens2_mm.Humans308Dataset',
        ann_file='train.json',
        metainfo=_keypoint_metainfo(),
        max_refetch=3,
        pipeline=[
            dict(type='sapiens2_mm.LoadImage'),
            dict(type='mmpose.GetBBoxCenterScale', padding=1.25),
            dict(type='mmpose.RandomFlip', prob=0.5, direction='horizontal'),
            dict(type='sapiens2_mm.Sapiens2RandomHalfBody', prob=0.3),
            dict(type='mmpose.RandomBBoxTransform', rotate_factor=80.0),
            dict(type='sapiens2_mm.Sapiens2TopdownAffine', input_size=SIZE[::-1]),
            dict(type='sapiens2_mm.RandomBlur', kind='box', prob=0.5),
            dict(type='sapiens2_mm.CoarseDropout', prob=0.5),
            dict(type='mmpose.PackPoseInputs', pack_transformed=True),
        ],
    ),
    ('pose', 5),
    {
        'ann_file': ['', 'none.json', '.'],
        'data_prefix': [{}, dict(img='none'), dict(img_path='')],
        'keypoints_key': ['none', 'bbox', 'id', 'area'],
        'category_names': ['none', [], ['person'], [1]],
        'indices': [0, 1, [5], []],
        'metainfo.sigmas': [[], [0.1] * 4, [0] * 5, ['x'] * 5, None, 3, [5] * 5],
        'metainfo.joint_weights': [[], [1] * 4, [-1] * 5, [NAN] * 5, 'x'],
        'metainfo.keypoint_info': [{}, [], None, {0: 'nose'}, {1: dict(name='nose')}],
        'metainfo.skeleton_info': [{0: dict(link=('nose', 'ear'))}, {0: {}}, []],
        'metainfo.keypoint_info.1.swap': ['', 'nose', 'none', 3, None],
        'metainfo.keypoint_info.2.name': ['nose', '', None, 3],
    },
)


def _write_seg(root: Path) -> None:
    for index in range(2):
        _picture(root / f'rgb/{index}.png', _noise(index, 3))
        _picture(root / f'seg/{index}.png', _noise(index) % 3)
    (root / 'train.txt').write_text('0\n1\n')


_SEG = Task(
    _write_seg,
    dict(
        type='sapiens2_mm.SegDataset',
        ann_file='train.txt',
        metainfo=dict(classes=CLASSES, swap_classes=[('left_sleeve', 'right_sleeve')]),
        in_the_wild=False,
        max_refetch=3,
        pipeline=[
            dict(type='sapiens2_mm.LoadImage'),
            dict(type='sapiens2_mm.LoadSegAnnotations'),
            dict(type='sapiens2_mm.RandomBackground', prob=0.5),
            dict(type='sapiens2_mm.RandomGaussianBlur', prob=0.3),
            dict(type='sapiens2_mm.RandomGaussianNoise', prob=0.3),
            dict(type='sapiens2_mm.SegFlip', prob=0.5),
            dict(type='sapiens2_mm.AreaCubicResize', size=SIZE),
            dict(type='sapiens2_mm.FilterForeground', min_ratio=0.01),
            dict(type='mmseg.PackSegInputs'),
        ],
    ),
    ('seg', 3),
    {
        'ann_file': ['', 'none.txt', 'none.json', 'rgb'],
        'data_prefix': [
            {},
            dict(img_path='none'),
            dict(img='rgb'),
            dict(img_path='seg'),
        ],
        'label_map': [{}, {0: 7}, {0: 0}, {-1: 0}, {'x': 0}, {0: None}, [0, 1], 'x'],
        'reduce_zero_label': [True],
        'ignore_index': [0, 1, 254, 256, -1, None, 'x'],
        'seg_map_suffix': ['.jpg', '', None],
        'img_suffix': ['.jpg', '_x.png'],
        'metainfo.classes': [(), 'abc', ('a',), ('a', 'a', 'b'), (1, 2, 3), None],
        'metainfo.palette': [[], [(0, 0, 0)], 'x', [(0, 0)] * 3, [(300, 0, 0)] * 3],
        'metainfo.swap_classes': [[('a', 'b')], ['x'], [(1, 2)], 3, [('left_sleeve',)]],
        'pipeline.5.flip_pairs': [[(1, 7)], [(1, -1)], [('a', 'b')], [(1, 1)], [3], 3],
        'pipeline.1.palette': [[(0, 0, 0)], [], 'x'],
    },
)


def _write_dense(root: Path) -> None:
    rng = np.random.default_rng(0)
    for index in range(2):
        _picture(root / f'rgb/{index}.png', _noise(index, 3))
        _picture(root / f'mask/{index}.png', (_noise(index) > 60) * np.uint8(255))
        _picture(root / f'albedo/{index}.png', _noise(index + 9, 3))
        for name, values in dict(
            normal=rng.normal(size=(HEIGHT, WIDTH, 3)),
            depth=rng.uniform(1, 3, (HEIGHT, WIDTH)),
            seg=rng.integers(0, 29, (HEIGHT // 2, WIDTH // 2)),
        ).items():
            (root / name).mkdir(exist_ok=True)
            np.save(root / name / f'{index}.npy', values)
        for name, matrix in dict(
            intrinsics=[[70, 0, 24], [0, 70, 32], [0, 0, 1]], extrinsics=np.eye(4)
        ).items():
            (root / f'camera_{name}').mkdir(exist_ok=True)
            np.savetxt(root / f'camera_{name}' / f'{index}.txt', matrix)


_DENSE = dict(
    type='sapiens2_mm.DenseFolderDataset',
    fields=('normal', 'depth', 'albedo'),
    with_camera=True,
    with_parts=True,
    max_refetch=3,
    pipeline=[
        dict(type='sapiens2_mm.LoadImage'),
        dict(
            type='sapiens2_mm.LoadDenseAnnotations',
            fields=('normal', 'depth', 'albedo'),
            with_camera=True,
            excluded_parts=[2],
        ),
        dict(type='sapiens2_mm.PhotometricDistortion'),
        dict(type='sapiens2_mm.DenseRandomScale'),
        dict(type='sapiens2_mm.DenseRandomCrop'),
        dict(type='sapiens2_mm.DenseRandomFlip'),
        dict(type='sapiens2_mm.Letterbox', size=SIZE),
        dict(type='sapiens2_mm.PointmapTarget', min_canonical_depth=0.04),
        dict(type='sapiens2_mm.FilterByMask'),
        dict(type='sapiens2_mm.PackDenseInputs'),
    ],
)
_DENSE_OPTIONS = {
    'fields': [('normal',), ('none',), (), 'normal', [3]],
    'depth_scale': [0, -1, NAN, 'x'],
    'data_prefix': [dict(depth='none'), dict(x='y'), dict(normal='depth')],
    'with_camera': [False],
    'with_mask': [False],
    'with_parts': [False],
    'pipeline.1.fields': [('normal',), ('none',), ()],
    'pipeline.1.with_camera': [False],
    'pipeline.1.excluded_parts': [(), list(range(29)), ['x']],
    'pipeline.3.scale_range': [(0, 1), (2, 1), (NAN, NAN), (-1, 2)],
    'pipeline.4.area_range': [(0, 1), (0.5, 2), (NAN, NAN)],
}
_NORMAL = Task(_write_dense, _DENSE, ('normal', None), _DENSE_OPTIONS)
_ALBEDO = Task(_write_dense, _DENSE, ('albedo', None), _DENSE_OPTIONS)
_POINTMAP = Task(_write_dense, _DENSE, ('pointmap', None), _DENSE_OPTIONS)


def _write_matting(root: Path) -> None:
    for index in range(2):
        _picture(root / f'{index}.png', _noise(index, 3))
        _picture(root / f'alpha{index}.png', _noise(index, 4 if index else 1).squeeze())
    entries = [dict(image=f'{i}.png', mask=f'alpha{i}.png') for i in range(2)]
    (root / 'train.json').write_text(json.dumps(entries))


_MATTING = Task(
    _write_matting,
    dict(
        type='sapiens2_mm.MattingListDataset',
        ann_file='train.json',
        max_refetch=3,
        pipeline=[
            dict(type='sapiens2_mm.LoadImage'),
            dict(type='sapiens2_mm.LoadMatte'),
            dict(type='sapiens2_mm.RandomAlphaCrop'),
            dict(type='sapiens2_mm.RandomMatteRotate'),
            dict(type='sapiens2_mm.DenseResize', size=SIZE),
            dict(type='sapiens2_mm.PackDenseInputs'),
        ],
    ),
    ('matting', None),
    {
        'ann_file': ['', 'none.json', '0.png', 'none.txt'],
        'pipeline.1.binary': [True],
    },
)


def _write_images(root: Path) -> None:
    for index in range(2):
        _picture(root / f'{index}.png', _noise(index, 3))
    (root / 'train.txt').write_text('0.png\n1.png\n')


_PRETRAIN = Task(
    _write_images,
    dict(
        type='sapiens2_mm.UnlabeledImageDataset',
        ann_file='train.txt',
        max_skips=3,
        pipeline=[],
    ),
    None,
    {
        'ann_file': ['', 'none.txt', 'none.json', '0.png'],
        'max_skips': [0],
        'min_short_side': [0, 1000],
    },
)

TASKS = dict(
    pose=_POSE,
    seg=_SEG,
    normal=_NORMAL,
    albedo=_ALBEDO,
    pointmap=_POINTMAP,
    matting=_MATTING,
    pretrain=_PRETRAIN,
)
