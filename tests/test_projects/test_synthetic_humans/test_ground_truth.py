"""The shipped samples agree with themselves, measured on the files alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
import pytest

from sapiens2_mm.datasets.metainfo.humans29 import METAINFO as HUMANS29
from sapiens2_mm.datasets.metainfo.humans308 import METAINFO as HUMANS308

ROOT = Path(__file__).parents[2] / 'data' / 'synthetic_humans'
CLASS_ID = {name: i for i, name in enumerate(HUMANS29['classes'])}
NAMES = [info['name'] for _, info in sorted(HUMANS308['keypoint_info'].items())]
KEYPOINT_ID = {name: i for i, name in enumerate(NAMES)}
FIRST_FACE_ID = 70


class Shipped(NamedTuple):
    """One decoded sample; the same units as the manifest tells."""

    image: dict
    annotation: dict
    rgb: np.ndarray
    seg: np.ndarray
    albedo: np.ndarray
    normal: np.ndarray
    depth: np.ndarray
    points: np.ndarray
    keypoints: np.ndarray
    keypoint_points: np.ndarray

    @property
    def mask(self) -> np.ndarray:
        return self.depth > 0


def unproject(camera: dict, u, v, depth) -> np.ndarray:
    """Depth times the inverse camera matrix times [u, v, 1]."""
    matrix = np.array(
        [[camera['fx'], 0, camera['cx']], [0, camera['fy'], camera['cy']], [0, 0, 1]]
    )
    rays = np.stack([u, v, np.ones_like(u)], axis=-1) @ np.linalg.inv(matrix).T
    return rays * depth[..., None]


def load_all() -> Iterator[Shipped]:
    """All six samples."""
    for split in ('train', 'val'):
        coco = json.loads((ROOT / 'annotations' / f'{split}.json').read_text())
        for image, annotation in zip(coco['images'], coco['annotations'], strict=True):
            stem = Path(image['file_name']).stem

            def read(kind: str, stem=stem) -> np.ndarray:
                path = ROOT / kind / f'{stem}.png'
                pixels = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
                return pixels[..., ::-1] if pixels.ndim == 3 else pixels

            depth = read('depth') * 2e-4
            height, width = depth.shape
            u, v = np.meshgrid(np.arange(width, dtype=float), np.arange(height))
            keypoints = np.array(annotation['keypoints'], float).reshape(308, 3)
            keypoint_depth = np.array(annotation['keypoint_depths'])
            yield Shipped(
                image=image,
                annotation=annotation,
                rgb=cv2.imread(str(ROOT / image['file_name']))[..., ::-1],
                seg=read('seg'),
                albedo=read('albedo'),
                normal=read('normal') / 32767.5 - 1,
                depth=depth,
                points=unproject(image['camera'], u, v, depth),
                keypoints=keypoints,
                keypoint_points=unproject(
                    image['camera'], keypoints[:, 0], keypoints[:, 1], keypoint_depth
                ),
            )


@pytest.fixture(scope='module')
def samples() -> list[Shipped]:
    return list(load_all())


def test_layout_and_annotations(samples):
    assert len(samples) == 6
    for split in ('train', 'val'):
        coco = json.loads((ROOT / 'annotations' / f'{split}.json').read_text())
        (category,) = coco['categories']
        assert (category['id'], category['name']) == (1, 'person')
        assert category['keypoints'] == NAMES
    assert len({s.annotation['id'] for s in samples}) == 6
    for i, s in enumerate(samples):
        assert s.image['id'] == s.annotation['image_id'] == i
        assert s.annotation['id'] > 0  # COCO evaluators read 0 as "no match"
        assert s.image['file_name'] == f'rgb/{i:06d}.jpg'
        assert (s.image['height'], s.image['width']) == (384, 288)
        assert s.rgb.shape == (384, 288, 3)
        assert s.annotation['iscrowd'] == 0 and s.annotation['category_id'] == 1
        rows, cols = np.nonzero(s.mask)
        assert s.annotation['bbox'] == [
            cols.min(),
            rows.min(),
            np.ptp(cols) + 1,
            np.ptp(rows) + 1,
        ]
        assert s.annotation['area'] == s.mask.sum()
        visible = s.keypoints[:, 2] > 0
        assert s.annotation['num_keypoints'] == visible.sum() >= 8
        assert (s.keypoints[~visible] == 0).all()
        u, v = s.keypoints[visible, :2].T
        assert (u >= 0).all() and (u <= 287).all()
        assert (v >= 0).all() and (v <= 383).all()
        camera = s.image['camera']
        assert camera['fx'] == camera['fy'] > 0
        assert (camera['cx'], camera['cy']) == (143.5, 191.5)


def test_all_maps_share_one_mask(samples):
    for s in samples:
        assert ((s.seg > 0) == s.mask).all()
        assert ((s.normal > -1).any(axis=2) == s.mask).all()
        assert ((s.albedo > 0).any(axis=2) == s.mask).all()


def test_all_29_classes_occur_and_no_other(samples):
    seen = set()
    for s in samples:
        seen |= set(np.unique(s.seg).tolist())
    assert seen == set(range(29))


def test_pointmap_projects_to_its_pixel(samples):
    for s in samples:
        camera = s.image['camera']
        rows, cols = np.nonzero(s.mask)
        x, y, z = s.points[s.mask].T
        u = camera['fx'] * x / z + camera['cx']
        v = camera['fy'] * y / z + camera['cy']
        np.testing.assert_allclose(u, cols, atol=1e-9)
        np.testing.assert_allclose(v, rows, atol=1e-9)


def test_normals_are_unit_and_face_the_camera(samples):
    for s in samples:
        normal, points = s.normal[s.mask], s.points[s.mask]
        length = np.linalg.norm(normal, axis=1)
        np.testing.assert_allclose(length, 1, atol=1e-4)
        view = -points / np.linalg.norm(points, axis=1, keepdims=True)
        assert ((normal * view).sum(axis=1) > 0).all()
        assert (normal[:, 2] < 0).mean() > 0.99  # Z points away from the camera


def test_normals_agree_with_the_depth_gradient(samples):
    """Median near 1 degree; the 0.2 mm depth steps alone cost about half of it."""
    for s in samples:
        reach = 2

        def shift(cols: int, rows: int, s=s) -> np.ndarray:
            return np.roll(s.points, (-rows, -cols), axis=(0, 1))

        across = shift(reach, 0) - shift(-reach, 0)
        down = shift(0, reach) - shift(0, -reach)
        normal = np.cross(down, across)
        normal /= np.maximum(np.linalg.norm(normal, axis=2, keepdims=True), 1e-12)
        window = np.ones((2 * reach + 3,) * 2, np.uint8)
        flat = cv2.dilate(s.seg, window) == cv2.erode(s.seg, window)
        flat &= s.mask
        cosine = (normal * s.normal).sum(axis=2)[flat]
        angle = np.degrees(np.arccos(np.clip(cosine, -1, 1)))
        assert len(angle) > 1000
        assert np.median(angle) < 1.8
        assert np.percentile(angle, 90) < 6


def test_visible_surface_keypoints_lie_on_the_surface(samples):
    for s in samples:
        seen = (s.keypoints[:, 2] == 2) & (np.arange(308) >= FIRST_FACE_ID)
        cols, rows = np.round(s.keypoints[seen, :2]).astype(int).T
        on_person = s.mask[rows, cols]
        assert on_person.mean() > 0.95  # rims of ears and nose round outwards
        gap = s.depth[rows, cols] - s.keypoint_points[seen, 2]
        pixel = np.median(s.depth[s.mask]) / s.image['camera']['fx']
        assert np.median(np.abs(gap[on_person])) < 5e-4 + 0.3 * pixel


def test_hidden_keypoints_lie_behind_the_surface(samples):
    for s in samples:
        hidden = (s.keypoints[:, 2] == 1) & (np.arange(308) >= FIRST_FACE_ID)
        eyes = [('_iris' in n or '_pupil' in n) for n in NAMES]
        hidden &= ~np.array(eyes)  # under a closed lid: thinner than the tolerance
        cols, rows = np.round(s.keypoints[hidden, :2]).astype(int).T
        front = s.depth[rows, cols]
        on_person = front > 0
        behind = s.keypoint_points[hidden, 2][on_person] - front[on_person]
        pixel = np.median(s.depth[s.mask]) / s.image['camera']['fx']
        assert (behind > -0.002 - 2 * pixel).mean() > 0.95


def test_keypoints_lie_on_their_own_parts(samples):
    """Points on or in a part are seen through pixels of that part."""
    face = {'Face_Neck', 'Upper_Lip', 'Lower_Lip', 'Eyeglass', 'Hair'}
    expected = {
        'tip_of_nose': face,
        'tip_of_chin': face,
        'center_of_glabella': face,
        'left_middle_finger2': {'Left_Hand'},
        'right_middle_finger2': {'Right_Hand'},
        'left_big_toe': {'Left_Foot', 'Left_Sock', 'Left_Shoe'},
        'right_big_toe': {'Right_Foot', 'Right_Sock', 'Right_Shoe'},
    }
    checked = 0
    for s in samples:
        for name, classes in expected.items():
            u, v, flag = s.keypoints[KEYPOINT_ID[name]]
            if flag != 2:
                continue
            around = s.seg[int(v) - 1 : int(v) + 3, int(u) - 1 : int(u) + 3]
            assert np.isin(around, [CLASS_ID[c] for c in classes]).any(), name
            checked += 1
    assert checked >= 15


def test_left_names_are_on_the_subjects_left(samples):
    """left x up points forward for every pair, forward being ears to nose."""
    pairs = [
        ('left_shoulder', 'right_shoulder'),
        ('left_hip', 'right_hip'),
        ('left_ear', 'right_ear'),
        ('l_outer_corner_of_mouth', 'r_outer_corner_of_mouth'),
        ('l_center_of_iris', 'r_center_of_iris'),
        ('end_of_l_eyebrow', 'end_of_r_eyebrow'),
        ('l_tip_of_ear_lobe', 'r_tip_of_ear_lobe'),
    ]
    checked = 0
    for s in samples:
        inside = s.keypoints[:, 2] > 0
        at = {name: s.keypoint_points[i] for name, i in KEYPOINT_ID.items()}
        forward = at['nose'] - (at['left_ear'] + at['right_ear']) / 2
        up = at['center_of_glabella'] - at['tip_of_chin']
        for left, right in pairs:
            if inside[KEYPOINT_ID[left]] and inside[KEYPOINT_ID[right]]:
                assert np.cross(at[left] - at[right], up) @ forward > 0, (left, right)
                checked += 1
    assert checked >= 36


def test_left_labels_are_nearest_to_left_keypoints(samples):
    joints = {
        'Hand': 'middle_finger_third_joint',
        'Lower_Arm': 'wrist',
        'Foot': 'big_toe',
        'Shoe': 'big_toe',
        'Sock': 'ankle',
        'Lower_Leg': 'ankle',
        'Upper_Leg': 'knee',
    }
    checked = 0
    for s in samples:
        for part, joint in joints.items():
            ends = {}
            for side in ('left', 'right'):
                index = KEYPOINT_ID[f'{side}_{joint}']
                if s.keypoints[index, 2]:
                    ends[side] = s.keypoint_points[index]
            if len(ends) < 2:
                continue
            for side, other in (('left', 'right'), ('right', 'left')):
                label = CLASS_ID[f'{side.title()}_{part}']
                points = s.points[s.seg == label]
                if len(points) < 20:
                    continue
                own = np.linalg.norm(points - ends[side], axis=1)
                far = np.linalg.norm(points - ends[other], axis=1)
                assert np.median(own) < np.median(far), (part, side)
                checked += 1
    assert checked >= 20


def test_clothes_do_not_look_like_skin(samples):
    """Mean albedo of every garment is far from that of the person's skin."""
    clothes = ['Upper_Clothing', 'Lower_Clothing', 'Left_Sock', 'Right_Shoe']
    for s in samples:
        skin = s.albedo[s.seg == CLASS_ID['Face_Neck']].mean(axis=0)
        for name in clothes:
            worn = s.albedo[s.seg == CLASS_ID[name]]
            if len(worn) < 30:
                continue
            distance = np.linalg.norm(worn.astype(float) - skin, axis=1) / 255
            assert np.percentile(distance, 5) > 0.12, name


def test_torso_and_legs_are_covered(samples):
    """Upper and lower clothes are always on; bare trunk is a small rest."""
    for s in samples:
        area = np.bincount(s.seg.ravel(), minlength=29)
        trunk = area[CLASS_ID['Torso']]
        assert area[CLASS_ID['Upper_Clothing']] > 0
        if s.image['framing'] != 'head':
            assert area[CLASS_ID['Lower_Clothing']] > 0
            assert trunk < 0.2 * area[CLASS_ID['Upper_Clothing']]
