import cv2
import numpy as np
import pytest
from mmengine.structures import InstanceData

pytest.importorskip('mmpose')

from mmpose.structures import PoseDataSample

from sapiens2_mm.datasets import Humans308Dataset
from sapiens2_mm.registry import VISUALIZERS
from sapiens2_mm.visualization import Sapiens2PoseVisualizer

HEIGHT, WIDTH = 64, 48


@pytest.fixture
def meta(table5):
    return Humans308Dataset._load_metainfo(table5)


@pytest.fixture
def sample():
    """Five points of one person; the last one is below the threshold."""
    points = np.array([[[10.0, 10], [30, 10], [10, 40], [30, 40], [40, 60]]])
    scores = np.array([[0.9, 0.9, 0.9, 0.4, 0.2]])
    instances = InstanceData(
        keypoints=points,
        keypoint_scores=scores,
        bboxes=np.array([[4.0, 4, 44, 62]]),
    )
    return PoseDataSample(
        gt_instances=InstanceData(
            keypoints=points,
            keypoints_visible=scores > 0.5,
            transformed_keypoints=points + 1000,
        ),
        pred_instances=instances,
    )


def draw(visualizer, sample, **kwargs):
    image = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    kwargs = {**dict(draw_gt=False, draw_bbox=False), **kwargs}
    return visualizer.add_datasample('name', image, sample, **kwargs)


def test_points_and_links(meta, sample):
    meta.update(skeleton_links=[[1, 2]], keypoint_colors=np.full((5, 3), 200))
    visualizer = Sapiens2PoseVisualizer(radius=2)
    visualizer.dataset_meta = meta
    image = draw(visualizer, sample)
    assert image[10, 10].tolist() == image[40, 30].tolist() == [200, 200, 200]
    assert image[25, 20].tolist() == [0, 0, 255]  # middle of the link, in RGB
    assert image[60, 40].max() == 0  # score 0.2
    assert draw(visualizer, sample, kpt_thr=0.1)[60, 40].max() == 200
    assert image[50].max() == 0


def test_points_lie_over_links(meta, sample):
    visualizer = Sapiens2PoseVisualizer(radius=2, line_width=3)
    visualizer.dataset_meta = meta
    image = draw(visualizer, sample)
    for index, (x, y) in enumerate(sample.pred_instances.keypoints[0, :4].astype(int)):
        assert image[y, x].tolist() == meta['keypoint_colors'][index].tolist()


def test_file_is_written(meta, sample, tmp_path):
    visualizer = VISUALIZERS.build(
        dict(type='sapiens2_mm.Sapiens2PoseVisualizer', name='written')
    )
    visualizer.dataset_meta = meta
    path = tmp_path / 'тест é/人 1.png'
    draw(visualizer, sample, draw_gt=True, draw_bbox=True, out_file=str(path))
    image = cv2.imdecode(np.fromfile(path, dtype=np.uint8), cv2.IMREAD_COLOR)
    assert image.shape == (HEIGHT, 2 * WIDTH, 3)
    left, right = image[:, :WIDTH], image[:, WIDTH:]
    assert left.any() and right.any()
    # The truth is drawn in image pixels, not in those of the crop.
    assert left[10, 10].any()
    assert right[4:62, 4].any(axis=-1).all()  # box


def test_the_308_keypoints(data_dir, tmp_path):
    dataset = Humans308Dataset(
        data_root=str(data_dir / 'synthetic_humans'), ann_file='annotations/train.json'
    )
    visualizer = Sapiens2PoseVisualizer()
    visualizer.dataset_meta = dataset.metainfo
    info = dataset.get_data_info(0)
    image = cv2.imread(info['img_path'])[..., ::-1]
    instances = InstanceData(
        keypoints=info['keypoints'], keypoints_visible=info['keypoints_visible']
    )
    path = tmp_path / 'picture.png'
    drawn = visualizer.add_datasample(
        'name',
        image,
        PoseDataSample(gt_instances=instances),
        draw_pred=False,
        out_file=str(path),
    )
    assert drawn.shape == image.shape and path.stat().st_size > 1000
    changed = (drawn != image).any(axis=-1).mean()
    assert 0.002 < changed < 0.2  # visible, yet the person is not hidden


def test_sizes_follow_the_person(data_dir):
    dataset = Humans308Dataset(
        data_root=str(data_dir / 'synthetic_humans'), ann_file='annotations/train.json'
    )
    visualizer = Sapiens2PoseVisualizer()
    visualizer.dataset_meta = dataset.metainfo
    person = dataset.get_data_info(1)['keypoints'][0]
    visible = np.ones(308, dtype=bool)
    small, large = (visualizer._radii(person * s, visible) for s in (1.0, 3.0))
    assert (large >= small).all() and (large > small).any()
    face = dataset.metainfo['keypoint_groups']['face']
    assert large[face].max() < large[5]
    assert small.min() >= 0.7 and large.max() <= 6


def test_without_links_and_colors(meta, sample):
    visualizer = Sapiens2PoseVisualizer(radius=2)
    visualizer.dataset_meta = {
        **meta,
        'skeleton_links': [],
        'num_skeleton_links': 0,
        'skeleton_link_colors': np.zeros((0, 3)),
    }
    assert draw(visualizer, sample)[25, 20].max() == 0
    bare = Sapiens2PoseVisualizer(radius=2)
    bare.set_dataset_meta(None)
    assert draw(bare, sample)[10, 10].tolist() == [255, 0, 0]


def test_subset_of_names(meta, sample):
    visualizer = Sapiens2PoseVisualizer(radius=2, keypoint_names=['nose', 'left_0'])
    visualizer.dataset_meta = meta
    image = draw(visualizer, sample)
    assert image[10, 10].any() and image[10, 30].any()
    assert not image[40].any()
    visualizer = Sapiens2PoseVisualizer(keypoint_names=['left_knie'])
    with pytest.raises(ValueError, match=r"\['left_knie'\] are not in the metainfo"):
        visualizer.dataset_meta = meta
    with pytest.raises(ValueError, match='keypoint_names needs the keypoint metainfo'):
        draw(Sapiens2PoseVisualizer(keypoint_names=['nose']), sample)


def test_names_are_a_list():
    with pytest.raises(TypeError, match=r"got the text 'nose'; write \['nose'\]"):
        Sapiens2PoseVisualizer(keypoint_names='nose')


def test_numbers_of_colors(meta, sample):
    visualizer = Sapiens2PoseVisualizer()
    visualizer.dataset_meta = Humans308Dataset._load_metainfo()
    with pytest.raises(ValueError, match='5 keypoints to draw, the metainfo has 308'):
        draw(visualizer, sample)
    for part, message in (
        ('skeleton_link_colors', '3 colors for 1 links'),
        ('keypoint_colors', '3 colors for 5 keypoints'),
    ):
        with pytest.raises(ValueError, match=message):
            visualizer.dataset_meta = {**meta, part: np.zeros((3, 3))}
    visualizer.dataset_meta = meta
    visualizer.kpt_color = np.zeros((133, 3))
    with pytest.raises(ValueError, match='133 colors for 5 keypoints'):
        draw(visualizer, sample)


def test_what_mmpose_passes(meta, sample):
    visualizer = Sapiens2PoseVisualizer(radius=2)
    visualizer.set_dataset_meta(meta, 'openpose')
    drawn = draw(visualizer, sample, skeleton_style='openpose')
    assert drawn.any() and np.array_equal(drawn, draw(visualizer, sample))


def test_on_a_crop_the_transformed_points_are_drawn(meta, sample):
    visualizer = Sapiens2PoseVisualizer(radius=2)
    meta.update(skeleton_links=[], num_skeleton_links=0, skeleton_link_colors=[])
    visualizer.dataset_meta = meta
    visible = np.ones((1, 5, 2))
    visible[0, 4] = 0
    sample.gt_instances.set_data(
        dict(
            bboxes=np.array([[0.0, 0, 47, 63]]),
            keypoints_visible=visible,  # with a weight, as KeypointConverter has it
            transformed_keypoints=sample.gt_instances.keypoints + [0, -5],
        )
    )
    sample.set_metainfo(dict(input_size=(WIDTH, HEIGHT)))
    image = draw(visualizer, sample, draw_gt=True, draw_pred=False, draw_bbox=True)
    assert image[5, 10].any() and image[35, 30].any()
    assert not image[10, 10].any() and not image[55, 40].any() and not image[0].any()
    sample.set_metainfo(dict(input_size=(HEIGHT, HEIGHT)))  # the whole picture
    image = draw(visualizer, sample, draw_gt=True, draw_pred=False)
    assert image[10, 10].any() and not image[5, 10].any()


def test_own_colors(meta, sample):
    colors = [(10 * i + 50, 7, 9) for i in range(5)]
    visualizer = Sapiens2PoseVisualizer(radius=2, kpt_color=colors, link_color='blue')
    visualizer.dataset_meta = meta
    image = draw(visualizer, sample)
    for index, (x, y) in enumerate(sample.pred_instances.keypoints[0, :4].astype(int)):
        assert image[y, x].tolist() == list(colors[index])
    for option, message in (
        (dict(kpt_color=colors[:3]), '3 colors for 5 keypoints'),
        (dict(link_color=colors), '5 colors for 1 links'),
    ):
        with pytest.raises(ValueError, match=message):
            Sapiens2PoseVisualizer(**option).dataset_meta = meta


def test_points_that_cannot_be_drawn(meta, sample):
    visualizer = Sapiens2PoseVisualizer(radius=2)
    visualizer.dataset_meta = meta
    points = sample.pred_instances.keypoints
    points[0, 0] = np.nan
    points[0, 1] = 1e30
    image = draw(visualizer, sample)
    assert not image[10, 10].any() and image[40, 10].any()
    empty = PoseDataSample(pred_instances=InstanceData(keypoints=np.zeros((0, 5, 2))))
    assert not draw(visualizer, empty).any()


def test_numbers_beside_points(meta, sample):
    visualizer = Sapiens2PoseVisualizer(radius=1)
    visualizer.dataset_meta = meta
    plain = draw(visualizer, sample)
    assert (draw(visualizer, sample, show_kpt_idx=True) > 0).sum() > (plain > 0).sum()
