import itertools

import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, PixelData
from PIL import Image

pytest.importorskip('mmseg')

from sapiens2_mm.registry import VISUALIZERS
from sapiens2_mm.visualization import overlay_labels

META = dict(
    classes=('background', 'shirt', 'trousers'),
    palette=[(50, 50, 50), (200, 0, 0), (0, 0, 200)],
)

NAMES = itertools.count()  # mmengine keeps instances by name


def make(meta=META, **kwargs):
    visualizer = VISUALIZERS.build(
        dict(type='sapiens2_mm.Sapiens2SegVisualizer', name=str(next(NAMES)), **kwargs)
    )
    visualizer.dataset_meta = meta
    return visualizer


def sample(gt=None, pred=None):
    element = BaseDataElement()
    for name, value in (('gt_sem_seg', gt), ('pred_sem_seg', pred)):
        if value is not None:
            element.set_data({name: PixelData(data=torch.as_tensor(value)[None])})
    return element


def test_overlay_by_hand():
    image = np.full((1, 4, 3), 100, np.uint8)
    labels = np.array([[0, 1, 2, 255]])
    out = overlay_labels(image, labels, META['palette'], alpha=0.5)
    assert out[0].tolist() == [
        [100, 100, 100],  # the background stays
        [150, 50, 50],
        [50, 50, 150],
        [178, 178, 178],  # ignored: white
    ]
    tinted = overlay_labels(image, labels, META['palette'], 1.0, background_id=None)
    assert tinted[0, 0].tolist() == [50, 50, 50]
    with pytest.raises(ValueError, match=r'\(1, 4, 3\).*\(2, 4\).*differ'):
        overlay_labels(image, np.zeros((2, 4), int), META['palette'])


def test_panels_and_legend():
    image = np.full((120, 50, 3), 100, np.uint8)
    gt, pred = np.zeros((120, 50), int), np.zeros((120, 50), int)
    gt[:60] = 1
    pred[:60] = 2
    both = make(draw_legend=False).add_datasample('x', image, sample(gt, pred))
    assert both.shape == (120, 100, 3)
    left = overlay_labels(image, gt, META['palette'])
    right = overlay_labels(image, pred, META['palette'])
    assert np.array_equal(both, np.concatenate([left, right], 1))
    only = make(draw_legend=False).add_datasample(
        'x', image, sample(gt, pred), draw_gt=False
    )
    assert np.array_equal(only, right)
    legend = make().add_datasample('x', image, sample(gt, pred))[:, 100:]
    colors = {tuple(c) for c in legend.reshape(-1, 3).tolist()}
    assert set(META['palette']) <= colors, 'both maps count for the legend'
    shirt_only = make().add_datasample('x', image, sample(gt))[:, 50:]
    assert (0, 0, 200) not in {tuple(c) for c in shirt_only.reshape(-1, 3).tolist()}


def test_without_anything_to_draw_it_is_the_image():
    image = np.full((10, 12, 3), 7, np.uint8)
    assert np.array_equal(make().add_datasample('x', image), image)
    assert np.array_equal(make(None).add_datasample('x', image, sample()), image)


def test_many_classes_go_into_columns():
    names = tuple(f'a rather long class name {i}' for i in range(60))
    meta = dict(classes=names, palette=[(i, 255 - i, 3 * i) for i in range(60)])
    labels = np.arange(60).repeat(2)[:, None].repeat(40, 1)
    image = np.zeros((120, 40, 3), np.uint8)
    picture = make(meta).add_datasample('x', image, sample(pred=labels))
    colors = {tuple(c) for c in picture[:, 40:].reshape(-1, 3).tolist()}
    assert set(meta['palette']) <= colors


def test_files_and_backends(tmp_path):
    image = np.zeros((20, 10, 3), np.uint8)
    labels = np.ones((20, 10), int)
    path = tmp_path / 'тест é' / '人 1.png'
    picture = make().add_datasample('x', image, sample(pred=labels), out_file=str(path))
    assert np.array_equal(np.asarray(Image.open(path)), picture)
    backend = make(
        vis_backends=[dict(type='LocalVisBackend')], save_dir=str(tmp_path / 'vis')
    )
    backend.add_datasample('name', image, sample(pred=labels), step=3)
    assert list((tmp_path / 'vis').rglob('name_3.png'))


@pytest.mark.parametrize('meta', [None, {}, {**META, 'palette': META['palette'][:2]}])
def test_needs_classes_and_colors(meta):
    with pytest.raises(ValueError, match='needs classes and one RGB color each'):
        make(meta).add_datasample(
            'x', np.zeros((2, 2, 3), np.uint8), sample(np.zeros((2, 2), int))
        )


def test_what_mmseg_sets_and_passes():
    image, labels = np.zeros((40, 30, 3), np.uint8), np.ones((40, 30), int)
    visualizer = make(None)
    visualizer.set_dataset_meta()  # not Cityscapes
    with pytest.raises(ValueError, match='0 classes and 0 colors'):
        visualizer.add_datasample('x', image, sample(pred=labels))
    visualizer.set_dataset_meta(**META)
    visualizer.alpha = 1.0
    picture = visualizer.add_datasample(
        'x', image, sample(pred=labels), draw_gt=False, with_labels=False
    )
    assert picture.shape == image.shape and picture[0, 0].tolist() == [200, 0, 0]
    assert np.array_equal(visualizer.get_image(), picture)
    wide = visualizer.add_datasample('x', image, sample(pred=labels), with_labels=True)
    assert wide.shape[1] > 30


def test_get_image_is_the_last_picture():
    """Of ``add_datasample``, or of ``set_image`` and what is drawn on it."""
    image, labels = np.zeros((40, 30, 3), np.uint8), np.ones((40, 30), int)
    visualizer = make(META)
    picture = visualizer.add_datasample('x', image, sample(pred=labels))
    assert visualizer.get_image() is picture
    visualizer.set_image(image + 200)
    visualizer.draw_bboxes(np.array([[5, 5, 20, 30]]), edge_colors='r')
    drawn = visualizer.get_image()
    assert drawn.shape == image.shape and drawn[0, 0].tolist() == [200, 200, 200]
    assert drawn[5, 10, 0] > 200 > drawn[5, 10, 1]
