import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import cv2
import numpy as np
import pytest

from sapiens2_mm.apis import MoveNetDetector


@pytest.fixture(scope='module')
def detector():
    return MoveNetDetector()


def iou(box, other):
    low, high = np.maximum(box[:2], other[:2]), np.minimum(box[2:4], other[2:4])
    both = (high - low).clip(0).prod()
    areas = [(b[2:4] - b[:2]).prod() for b in (box, other)]
    return both / (sum(areas) - both)


@pytest.fixture(scope='module')
def rendered(data_dir):
    """A rendered person, and the box."""
    image = cv2.imread(str(data_dir / 'synthetic_humans/rgb/000004.jpg'))
    return image, np.float32([35, 65, 35 + 193, 65 + 243])


def test_photograph(detector):
    """The portrait that matplotlib ships; the person fills it."""
    path = files('matplotlib') / 'mpl-data/sample_data/grace_hopper.jpg'
    (person,) = detector(cv2.imread(str(path)))
    assert iou(person, np.float32([0, 20, 512, 600])) > 0.9
    assert 0.5 < person[4] < 0.7


@pytest.mark.parametrize('size', [(96, 72), (384, 288), (1536, 1152)])
def test_rendered_person(detector, rendered, size):
    image, box = rendered
    resized = cv2.resize(image, size[::-1], interpolation=cv2.INTER_AREA)
    (person,) = detector(resized)
    assert iou(person, box * (size[0] / 384)) > 0.8


FEW = [(30, 350), (600, 60)]  # x, y
CROWD = [(x, y) for x in range(0, 800, 200) for y in range(0, 600, 200)]


@pytest.mark.parametrize('places, wrong', [(FEW, 0), (CROWD, 1)], ids=['few', 'crowd'])
def test_small_people(detector, rendered, places, wrong):
    """People of an eighth of the picture's width, at places of their own."""
    image, box = rendered
    scene = np.full((600, 800, 3), 128, np.uint8)
    small = cv2.resize(image, (144, 192), interpolation=cv2.INTER_AREA)
    for x, y in places:
        scene[y : y + 192, x : x + 144] = small
    found = detector(scene)
    assert len(places) <= len(found) <= len(places) + wrong
    for x, y in places:
        assert max(iou(person, box / 2 + [x, y, x, y]) for person in found) > 0.8


@pytest.mark.parametrize('shape', [(64, 64), (1, 1), (3, 900), (900, 3)])
def test_nobody(detector, shape):
    found = detector(np.full((*shape, 3), 128, np.uint8))
    assert found.shape == (0, 5) and found.dtype == np.float32


def test_two_threads_at_once(detector, rendered):
    """Each gets the people of its own picture."""
    image, _ = rendered
    images = [image, image[:, ::-1].copy()] * 4
    expected = [detector(picture) for picture in images]
    with ThreadPoolExecutor(2) as threads:
        for found, known in zip(threads.map(detector, images), expected, strict=True):
            assert np.array_equal(found, known)


def test_without_the_runtime(monkeypatch):
    monkeypatch.setitem(sys.modules, 'ai_edge_litert.interpreter', None)
    with pytest.raises(
        ImportError, match=r'needs ai-edge-litert; install sapiens2_mm\['
    ):
        MoveNetDetector()
