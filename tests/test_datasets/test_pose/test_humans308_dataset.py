import json

import numpy as np
import pytest
from mmengine.dataset import ConcatDataset

pytest.importorskip('mmpose')

from mmpose.datasets.datasets.base import BaseCocoStyleDataset

from sapiens2_mm.datasets import Humans308Dataset
from sapiens2_mm.evaluation import KeypointOKSMetric
from sapiens2_mm.registry import DATASETS


def build(path, table, **kwargs):
    return Humans308Dataset(
        ann_file=path.name, data_root=str(path.parent), metainfo=table, **kwargs
    )


def test_synthetic_humans(data_dir):
    dataset = DATASETS.build(
        dict(
            type='sapiens2_mm.Humans308Dataset',
            data_root=str(data_dir / 'synthetic_humans'),
            ann_file='annotations/train.json',
        )
    )
    assert len(dataset) == 4
    assert dataset.metainfo['num_keypoints'] == 308
    assert len(dataset.metainfo['flip_indices']) == 308
    assert len(dataset.metainfo['upper_body_ids']) == 51
    sample = dataset.get_data_info(0)
    assert sample['keypoints'].shape == (1, 308, 2)
    assert sample['keypoints'].dtype == np.float32
    assert set(np.unique(sample['keypoints_visible'])) <= {0.0, 1.0}
    content = json.loads(
        (data_dir / 'synthetic_humans/annotations/train.json').read_text()
    )
    assert sample['num_keypoints'] == content['annotations'][0]['num_keypoints']


def test_samples_hold_what_mmpose_gives_them(data_dir):
    dataset = build(data_dir / 'synthetic_humans/annotations/train.json', None)
    ours = dataset.get_data_info(0)
    theirs = BaseCocoStyleDataset.get_data_info(dataset, 0)
    assert list(ours) == list(theirs)
    for key, value in theirs.items():
        assert np.array_equal(ours[key], value), key
    for key in ('flip_pairs', 'flip_indices', 'dataset_keypoint_weights'):
        ours[key][0] = 0  # a sample is free to change its list
    again = dataset.get_data_info(0)
    assert all(np.array_equal(again[key], theirs[key]) for key in theirs)


def test_own_table(mini_coco, table5):
    dataset = build(mini_coco({}, {}), table5)
    assert len(dataset) == 2
    assert dataset.metainfo['keypoint_groups'] == dict(head=[0, 1, 2], legs=[3, 4])
    assert dataset.metainfo['flip_indices'] == [0, 2, 1, 4, 3]
    np.testing.assert_array_equal(
        dataset[0]['dataset_keypoint_weights'], np.ones(5, dtype=np.float32)
    )


def test_table_without_links_and_from_a_file(mini_coco, table5, tmp_path):
    del table5['skeleton_info']
    assert build(mini_coco({}), table5).metainfo['skeleton_links'] == []
    file = tmp_path / 'table.py'
    file.write_text(f'dataset_info = {table5!r}')
    assert len(build(mini_coco({}), dict(from_file=str(file)))) == 1


def test_what_is_no_table(mini_coco, table5, tmp_path):
    path = mini_coco({})
    with pytest.raises(TypeError, match=r"from_file='keypoints\.py'\), got 'mine\.py'"):
        build(path, 'mine.py')
    (tmp_path / 'other.py').write_text('a = 1\n')
    with pytest.raises(ValueError, match='has no dataset_info, the keypoint metainfo'):
        build(path, dict(from_file=str(tmp_path / 'other.py')))


def test_table_and_sigmas_must_agree(mini_coco, table5):
    table5['sigmas'] = []
    with pytest.raises(ValueError, match='5 keypoints, 0 sigmas'):
        build(mini_coco({}), table5)


def test_wrong_number_of_keypoints(mini_coco, table5):
    path = mini_coco({}, {}, num_keypoints=17)
    with pytest.raises(
        ValueError, match=r'annotation 0: keypoints has 17 keypoints.*expected 308'
    ):
        build(path, None)
    path = mini_coco({}, dict(id=77, keypoints=[1, 1, 2] * 4))
    with pytest.raises(ValueError, match=r'annotation 77: .*4 keypoints.*expected 5'):
        build(path, table5)
    with pytest.raises(ValueError, match=r'4\.33333 keypoints \(13 numbers\)'):
        build(mini_coco(dict(keypoints=[1] * 13)), table5)
    with pytest.raises(ValueError, match=r"expected numbers, got \['a'"):
        build(mini_coco(dict(keypoints=['a'] * 15)), table5)


def test_faulty_boxes(mini_coco, table5, log):
    path = mini_coco(
        dict(bbox=[-10, -10, 40, 40]),  # partly outside: clipped and kept
        dict(bbox=[100, 100, 10, 10]),
        dict(bbox=[5, 5, 0, 10]),
        dict(bbox=[30, 30, -10, 10]),
        dict(bbox=[float('nan'), 0, 10, 10]),
        {},
    )
    dataset = build(path, table5)
    assert [dataset[i]['id'] for i in range(len(dataset))] == [0, 5]
    np.testing.assert_array_equal(dataset[0]['bbox'], [[0, 0, 30, 30]])
    lines = [r.message for r in log.records if 'left out' in r.message]
    assert len(lines) == 1
    for part in (
        '6 images and 6 annotations',
        '1 with a box outside the image',
        '2 with an empty or negative box',
        '1 with a box or keypoints that are not finite',
    ):
        assert part in lines[0]


def test_keypoints_that_are_not_finite_are_left_out(mini_coco, table5):
    bad = dict(keypoints=[float('nan'), 1, 2] * 5)
    null = dict(keypoints=[None, 1, 2] * 5)
    assert len(build(mini_coco({}, bad, null), table5)) == 1


def test_crowd_with_rle(mini_coco, table5):
    rle = dict(counts=[0, 100, 2972], size=[64, 48])
    path = mini_coco({}, dict(iscrowd=1, segmentation=rle, keypoints=[0] * 15))
    dataset = build(path, table5)
    assert [dataset[i]['id'] for i in range(len(dataset))] == [0]


def test_visibility(mini_coco, table5):
    points = [0, 0, 0, 20, 20, 0, 20, 30, 1, 60, 30, 2, 25, 30, 2]
    sample = build(mini_coco(dict(keypoints=points)), table5)[0]
    # v=0 twice, v=1 counts, labeled outside the image does not train, v=2 counts
    assert sample['keypoints_visible'].tolist() == [[0, 0, 1, 0, 1]]
    assert sample['num_keypoints'] == 3


def test_nobody_left(mini_coco, table5):
    path = mini_coco({})
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, 'annotations': []}))
    with pytest.raises(
        ValueError, match=r'annotations\.json: read 1 images and 0 annotations'
    ):
        build(path, table5)
    path = mini_coco(dict(bbox=[0, 0, 0, 0]), dict(iscrowd=1))
    with pytest.raises(
        ValueError,
        match='read 2 images and 2 annotations, left out 1 with an empty or negative '
        'box, 1 crowd',
    ):
        build(path, table5)
    with pytest.raises(
        ValueError, match=r"\['cat'\].*\['person'\].*1 images and 1 annotations"
    ):
        build(mini_coco({}), table5, category_names=['cat'])
    with pytest.raises(ValueError, match='dropped 1 by filter_cfg'):
        build(mini_coco({}), table5, filter_cfg=dict(bbox_score_thr=2.0))
    assert len(build(mini_coco({}), table5, category_names='person')) == 1


@pytest.mark.parametrize('category', [0, 7])
def test_any_category_id(mini_coco, table5, category):
    categories = [dict(id=category, name='worker'), dict(id=50, name='dog')]
    path = mini_coco({}, dict(category_id=50), categories=categories)
    assert len(build(path, table5)) == 2
    dataset = build(path, table5, category_names=['worker'])
    assert [sample['category_id'] for sample in dataset] == [category]


def test_any_id(mini_coco, table5):
    ids = ['a1', '0007', 10**12]
    path = mini_coco(dict(id='x'), dict(id=10**15), {}, image_ids=ids)
    dataset = build(path, table5, test_mode=True)
    assert [sample['img_id'] for sample in dataset] == ids
    assert [sample['id'] for sample in dataset] == ['x', 10**15, 2]


@pytest.mark.parametrize(
    'person, message',
    [
        (dict(id=None), 'annotation 0: id must be a number or a string, got None'),
        (dict(id=[0]), r'id must be a number or a string, got \[0\]'),
        (dict(image_id=99), 'annotation 0: there is no image with image_id 99'),
        (dict(image_id='0'), "there is no image with image_id '0'"),
        (dict(image_id={}), 'image_id must be a number or a string, got {}'),
        (dict(bbox=[1, 2, 3]), r'bbox: expected 4 numbers, got \[1, 2, 3\]'),
        (dict(bbox='4 6 40 52'), "bbox: expected numbers, got '4 6 40 52'"),
        (dict(area='big'), "area: expected numbers, got 'big'"),
        (dict(iscrowd='0'), "iscrowd must be 0 or 1, got '0'"),
    ],
)
def test_faulty_annotation(mini_coco, table5, person, message):
    with pytest.raises(ValueError, match=message):
        build(mini_coco(person), table5)


@pytest.mark.parametrize(
    'part, entry, message',
    [
        ('images', 3, 'image 0: expected an object, got 3'),
        (
            'images',
            dict(file_name='a.png'),
            'image 0: id must be a number or a string',
        ),
        ('images', dict(id=0), 'image 0: file_name must be a string, got nothing'),
        (
            'images',
            dict(id=0, file_name='a.png', width='48', height=64),
            "image 0: width must be a number, got '48'",
        ),
        (
            'images',
            dict(id=0, file_name='a.png', width=0, height=64),
            'image 0: width and height must be at least 1 pixel, got 0 and 64',
        ),
        (
            'images',
            dict(id=0, file_name='a.png', width=48, height=float('nan')),
            'at least 1 pixel, got 48 and nan',
        ),
        (
            'images',
            dict(id=0, file_name=None, width=48, height=64),
            'file_name must be a string, got None',
        ),
        ('annotations', 'x', "annotation 0: expected an object, got 'x'"),
        (
            'categories',
            dict(name='person'),
            'category 0: id must be a number or a string',
        ),
    ],
)
def test_faulty_entry(mini_coco, table5, part, entry, message):
    path = mini_coco({})
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, part: [entry]}))
    with pytest.raises(ValueError, match=message):
        build(path, table5, category_names=['person'])


@pytest.mark.parametrize('categories', [[[dict(id=1, name='person')]], 3])
def test_categories_that_are_no_objects(mini_coco, table5, categories):
    path = mini_coco({})
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, 'categories': categories}))
    with pytest.raises(ValueError, match=r'annotations.json: category.*: expected'):
        build(path, table5)


def test_unreadable_file(mini_coco, table5, tmp_path):
    path = mini_coco({})
    text = path.read_text()
    for content in (b'', text.encode()[:-9], b'\xff\xfe\x00'):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r'annotations\.json is not a readable'):
            build(path, table5)
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        build(tmp_path, table5)


def test_faulty_file(mini_coco, table5, tmp_path):
    with pytest.raises(ValueError, match='used twice'):
        build(mini_coco({}, dict(id=0)), table5)
    path = mini_coco({})
    content = json.loads(path.read_text())
    del content['images'][0]['width']
    path.write_text(json.dumps(content))
    with pytest.raises(
        ValueError, match='image 0: width must be a number, got nothing'
    ):
        build(path, table5)
    path.write_text('[]')
    with pytest.raises(ValueError, match=r'expected an object, got \[\]'):
        build(path, table5)
    with pytest.raises(FileNotFoundError, match=r"nothing\.json' does not exist"):
        build(tmp_path / 'nothing.json', table5)


def test_official_key_wins(mini_coco, table5):
    other = [1, 1, 1] * 17  # 17 keypoints of COCO beside the official ones
    path = mini_coco(dict(keypoints=other, goliath_wholebody_kpts=[9, 9, 2] * 5))
    assert build(path, table5)[0]['keypoints'][0, 0].tolist() == [9, 9]
    with pytest.raises(ValueError, match='17 keypoints'):
        build(path, table5, keypoints_key='keypoints')


def test_detections(mini_coco, table5, tmp_path):
    path = mini_coco({}, {}, categories=[dict(id=7, name='worker')])
    good = dict(image_id=1, category_id=7, bbox=[2, 3, 10, 20], score=0.5)
    boxes = tmp_path / 'boxes.json'
    nan = float('nan')
    boxes.write_text(
        json.dumps([good, {**good, 'category_id': 3}, {**good, 'bbox': [0, 0, 0, 1]}])
    )
    dataset = build(path, table5, test_mode=True, bbox_file=str(boxes))
    assert len(dataset) == 1
    np.testing.assert_array_equal(dataset[0]['bbox'], [[2, 3, 12, 23]])
    assert dataset[0]['bbox_score'] == [0.5] and dataset[0]['img_id'] == 1
    for text, message in [
        (
            json.dumps([{**good, 'image_id': 'else'}]),
            "detection 0: there is no image with image_id 'else'",
        ),
        (json.dumps(dict(images=[])), 'detection: expected a list'),
        (
            json.dumps([{**good, 'bbox': [1, 2, 3]}]),
            'detection 0: bbox: expected 4 numbers',
        ),
        (
            json.dumps([{**good, 'bbox': 'all'}]),
            "bbox must be a list, got 'all'",
        ),
        (
            json.dumps([dict(image_id=0)]),
            'bbox must be a list, got nothing',
        ),
        (json.dumps([{**good, 'score': None}]), 'score must be a number, got None'),
        (json.dumps([{**good, 'score': nan}]), 'left out 1 with a box or score that'),
        ('[{"image_id": 0', r'boxes\.json is not a readable JSON file'),
    ]:
        boxes.write_text(text)
        with pytest.raises(ValueError, match=message):
            build(path, table5, test_mode=True, bbox_file=str(boxes))


def test_nobody_detected(mini_coco, table5, tmp_path, log):
    (tmp_path / 'boxes.json').write_text('[]')
    dataset = build(
        mini_coco({}), table5, test_mode=True, bbox_file=str(tmp_path / 'boxes.json')
    )
    assert len(dataset) == 0 and 'boxes.json holds no detection' in log.text
    metric = KeypointOKSMetric()
    metric.dataset_meta = dataset.metainfo
    assert metric.evaluate(size=0)['coco/AP'] == 0


def test_the_last_pixel_is_inside(mini_coco, table5):
    points = [47.4, 63.6, 2, 48, 63, 2, 47, 64, 2, 0, 0, 2, -0.1, 5, 2]
    sample = build(mini_coco(dict(keypoints=points)), table5)[0]
    assert sample['keypoints_visible'].tolist() == [[1, 0, 0, 1, 0]]


def test_categories_without_annotations(mini_coco, table5):
    categories = [dict(id=1, name='person'), dict(id=2, name='child')]
    path = mini_coco({}, {}, categories=categories)
    with pytest.raises(
        ValueError, match='read 2 images and 2 annotations, left out 2 '
    ):
        build(path, table5, category_names='child')


def test_pictures_of_another_size_than_in_the_file(mini_coco, table5):
    path = mini_coco({}, image_ids=['a'])
    content = json.loads(path.read_text())
    content['images'][0].update(width=64, height=48)
    path.write_text(json.dumps(content))
    dataset = build(path, table5, pipeline=[dict(type='sapiens2_mm.LoadImage')])
    with pytest.raises(
        ValueError, match=r"0\.png has height .* \(64, 48\), .* \(48, 64\) .* id 'a'"
    ):
        dataset[0]


def test_indices(mini_coco, table5):
    path = mini_coco({}, {}, {})
    assert [sample['id'] for sample in build(path, table5, indices=[2, 0])] == [2, 0]
    assert len(build(path, table5, indices=2)) == 2
    for indices in (0, []):
        with pytest.raises(ValueError, match=r'left of .* dropped 3 by indices'):
            build(path, table5, indices=indices)
    with pytest.raises(ValueError, match=r'left of .* by indices \[0, 3\]'):
        build(path, table5, indices=[0, 3])


def test_folder_of_the_images_must_be_named(mini_coco, table5):
    for folders in ({}, dict(img_path='images')):
        with pytest.raises(ValueError, match=r"must name .*'img'.*, got {.*}"):
            build(mini_coco({}), table5, data_prefix=folders)


def test_training_files_of_several_categories_join(mini_coco, table5, tmp_path):
    path = mini_coco({}, {})
    content = json.loads(path.read_text())
    content['categories'] = [dict(id=1, name='worker')]
    other = tmp_path / 'other.json'
    other.write_text(json.dumps(content))
    joined = ConcatDataset([build(path, table5), build(other, table5)])
    assert len(joined) == 4 and joined.metainfo['num_keypoints'] == 5


def test_sample_interval_and_other_paths(mini_coco, table5, tmp_path):
    path = mini_coco({}, {}, {}, image_ids=['a', 'b', 'c'])
    assert len(build(path, table5, sample_interval=2)) == 2
    folder = tmp_path / 'тест 测试 é'
    folder.mkdir()
    path.rename(folder / '人 1.json')
    dataset = build(folder / '人 1.json', table5, data_prefix=dict(img=str(tmp_path)))
    from sapiens2_mm.datasets.transforms import LoadImage

    assert LoadImage()(dataset.get_data_info(0))['img'].shape == (64, 48, 3)


def test_bottom_up_samples(mini_coco, table5):
    path = mini_coco({}, dict(image_id=0), dict(image_id=0, iscrowd=1))
    dataset = build(path, table5, data_mode='bottomup')
    assert len(dataset) == 1
    assert dataset[0]['keypoints_visible'].sum(axis=1).tolist() == [5, 5, 0]


def test_parts_of_the_metainfo_replace_those_of_the_308():
    weights = [2.0] * 308
    meta = Humans308Dataset._load_metainfo(dict(joint_weights=weights))
    assert meta['dataset_keypoint_weights'].tolist() == weights
    assert meta['num_keypoints'] == 308
    assert set(Humans308Dataset.METAINFO['joint_weights']) == {1.0}
    with pytest.raises(ValueError, match='308 keypoints, 5 joint_weights'):
        Humans308Dataset._load_metainfo(dict(joint_weights=[1.0] * 5))
    for key in ('JOINT_WEIGHTS', 'keypoints_info'):
        with pytest.raises(ValueError, match=rf"\['{key}'\] is none of"):
            Humans308Dataset._load_metainfo({key: weights})
