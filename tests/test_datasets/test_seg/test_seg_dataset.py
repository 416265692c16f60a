import json
import logging

import numpy as np
import pytest
from PIL import Image

pytest.importorskip('mmseg')

from mmengine.logging import MMLogger

from sapiens2_mm.datasets import Humans29Dataset, SegDataset
from sapiens2_mm.datasets.metainfo.humans29 import METAINFO
from sapiens2_mm.registry import DATASETS

LOAD = [dict(type='sapiens2_mm.LoadImage'), dict(type='sapiens2_mm.LoadSegAnnotations')]
ABC = dict(classes=('a', 'b', 'c'))


def make_root(root, masks, suffix='.jpg', **save):
    """``masks``: name -> (H, W) values or a PIL image."""
    for name, mask in masks.items():
        if not isinstance(mask, Image.Image):
            mask = Image.fromarray(np.asarray(mask, np.uint8))
        for folder, end in (('rgb', suffix), ('seg', '.png')):
            (root / folder / name).parent.mkdir(parents=True, exist_ok=True)
            image = Image.new('RGB', mask.size) if folder == 'rgb' else mask
            image.save(root / folder / f'{name}{end}')
    return str(root)


def labels(dataset, index=0):
    return dataset[index]['gt_seg_map']


@pytest.fixture
def warnings_of_log():
    lines = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = MMLogger.get_current_instance()
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)


def test_synthetic_layout(data_dir):
    root = str(data_dir / 'synthetic_humans')
    train = Humans29Dataset('annotations/train.json', data_root=root, pipeline=LOAD)
    assert len(train) == 4
    sample = train[0]
    assert sample['gt_seg_map'].shape == sample['img'].shape[:2] == (384, 288)
    assert sample['gt_seg_map'].dtype == np.uint8
    assert sample['flip_pairs'][0] == (5, 14) and len(sample['flip_pairs']) == 8
    assert train.metainfo['palette'] == METAINFO['palette']
    assert not train.metainfo['reduce_zero_label']
    everything = Humans29Dataset(data_root=root, pipeline=LOAD)
    assert len(everything) == 6
    with_zero = {0} <= set(np.unique(labels(everything)))
    assert with_zero, 'background counts'


def test_lists_of_names(tmp_path):
    root = make_root(tmp_path, {n: [[0]] for n in ('x', 'sub/y', 'z')})
    wanted = ['sub/y', 'x']
    (tmp_path / 'names.txt').write_text('rgb/sub/y.jpg\n\nx\n', encoding='utf-8')
    coco = dict(images=[dict(file_name='rgb/sub/y.jpg'), dict(file_name='x.jpg')])
    (tmp_path / 'coco.json').write_text(json.dumps(coco))
    official = [
        dict(sample_id='x', session_id='s', camera_id='c', frame_number=10),
        dict(sample_id='sub/y', session_id='s', camera_id='c', frame_number=9),
    ]
    (tmp_path / 'official.json').write_text(json.dumps(official))
    for ann_file in ('names.txt', 'coco.json', 'official.json'):
        dataset = SegDataset(ann_file, data_root=root, metainfo=ABC)
        ids = [dataset.get_data_info(i)['sample_id'] for i in range(len(dataset))]
        assert ids == wanted, ann_file
    assert len(SegDataset(data_root=root, metainfo=ABC)) == 3
    (tmp_path / 'official.JSON').write_text(json.dumps(official))
    assert len(SegDataset('official.JSON', data_root=root, metainfo=ABC)) == 2
    (tmp_path / 'names.txt').write_bytes('\ufeffsub/y\r\nx\r\n'.encode())  # Windows
    assert len(SegDataset('names.txt', data_root=root, metainfo=ABC)) == 2


@pytest.mark.parametrize(
    'text, message',
    [
        ('{"a":', 'is not a readable JSON file'),
        ('{"images": 3}', 'image: expected a list, got 3'),
        (
            '{"images": [{"id": 1}]}',
            'image 0: file_name must be a number or a string',
        ),
        ('[{"sample_id": "i"}, 1]', 'sample 1: expected an object, got 1'),
        (
            '[{"sample_id": null}]',
            'sample 0: sample_id must be a number or a string, got None',
        ),
    ],
)
def test_faulty_lists_name_file_and_entry(tmp_path, text, message):
    root = make_root(tmp_path, {'i': [[0]]})
    (tmp_path / 'list.json').write_text(text)
    with pytest.raises(ValueError, match=f'list.json:? ?{message}'):
        SegDataset('list.json', data_root=root, metainfo=ABC)


def test_own_ends_of_names(tmp_path):
    make_root(tmp_path, {'i': [[1, 2]], 'sub/j': [[2, 0]]})
    for path in tmp_path.rglob('*.*'):
        end = '_photo' if path.suffix == '.jpg' else '_mask'
        path.rename(path.with_stem(path.stem + end))
    kwargs = dict(data_root=str(tmp_path), metainfo=ABC, pipeline=LOAD)
    ends = dict(img_suffix='_PHOTO.jpg', seg_map_suffix='_mask.png')
    dataset = SegDataset(**ends, **kwargs)
    assert [labels(dataset, i).tolist() for i in range(2)] == [[[1, 2]], [[2, 0]]]
    assert dataset.get_data_info(1)['sample_id'] == 'sub/j'
    (tmp_path / 'names.txt').write_text('rgb/sub/j_photo.jpg\n')
    assert labels(SegDataset('names.txt', **ends, **kwargs)).tolist() == [[2, 0]]
    with pytest.raises(FileNotFoundError, match=r'no mask \(NAME_mask\.png\)'):
        SegDataset(seg_map_suffix='_mask.png', **kwargs)


def test_images_and_masks_in_one_folder(tmp_path):
    make_root(tmp_path, {'i': [[1, 2]]})
    (tmp_path / 'seg' / 'i.png').rename(tmp_path / 'rgb' / 'i.png')
    dataset = SegDataset(
        data_root=str(tmp_path),
        data_prefix=dict(img_path='rgb', seg_map_path='rgb'),
        img_suffix='.jpg',
        metainfo=ABC,
        pipeline=LOAD,
    )
    assert len(dataset) == 1 and labels(dataset).tolist() == [[1, 2]]


def test_non_ascii_paths_and_mixed_image_types(tmp_path):
    root = tmp_path / 'тест é'
    make_root(root, {'人 1': [[1, 2]]}, suffix='.png')
    make_root(root, {'b': [[2, 0]]}, suffix='.JPG')
    dataset = SegDataset(data_root=str(root), metainfo=ABC, pipeline=LOAD)
    assert sorted(labels(dataset, i).tolist()[0] for i in range(2)) == [[1, 2], [2, 0]]


@pytest.mark.parametrize('test_mode', [False, True])
def test_reduce_then_choose_classes_once(tmp_path, test_mode):
    class Five(SegDataset):
        METAINFO = dict(
            classes=('v', 'w', 'x', 'y', 'z'), palette=[(i,) * 3 for i in range(5)]
        )

    root = make_root(tmp_path, {'i': [[0, 1, 2, 3, 4, 5, 255]]})
    dataset = Five(
        data_root=root,
        metainfo=dict(classes=('z', 'v', 'x')),
        reduce_zero_label=True,
        test_mode=test_mode,
        pipeline=LOAD,
    )
    for _ in range(2):
        # 0 ignored; 1 'v' -> 1; 2 'w' out; 3 'x' -> 2; 4 'y' out; 5 'z' -> 0
        assert labels(dataset).tolist() == [[255, 1, 255, 2, 255, 0, 255]]
    assert dataset.metainfo['palette'] == [(4, 4, 4), (0, 0, 0), (2, 2, 2)]


def test_same_labels_as_mmseg_where_mmseg_can(tmp_path):
    root = make_root(tmp_path, {'i': [[0, 3, 22, 28, 255]] * 2})
    pipeline = [LOAD[0], dict(type='mmseg.LoadAnnotations')]
    chosen = dict(classes=('Torso', 'Background', 'Tongue'))
    kwargs = dict(data_root=root, metainfo=chosen)
    ours = labels(Humans29Dataset(pipeline=LOAD, **kwargs))
    theirs = labels(Humans29Dataset(pipeline=pipeline, **kwargs))
    assert ours.tolist() == theirs.tolist() == [[1, 255, 0, 2, 255]] * 2


def test_source_vocabulary_and_subset(tmp_path):
    root = make_root(tmp_path, {'i': [[0, 2, 8, 7, 33, 255]]})
    dataset = Humans29Dataset(data_root=root, source='dome34', pipeline=LOAD)
    assert labels(dataset).tolist() == [[0, 0, 5, 255, 28, 255]]
    chosen = dict(classes=('Background', 'Left_Foot'))
    dataset = Humans29Dataset(
        data_root=root, source='dome34', metainfo=chosen, pipeline=LOAD
    )
    assert labels(dataset).tolist() == [[0, 0, 1, 255, 255, 255]]
    # The right foot is no class: a mirrored left foot is ignored.
    assert dataset.metainfo['flip_pairs'] == [(1, 255)]
    assert dataset.metainfo['palette'] == [
        METAINFO['palette'][0],
        METAINFO['palette'][5],
    ]


def test_own_label_map_makes_255_a_class(tmp_path):
    root = make_root(tmp_path, {'i': [[0, 255]]})
    meta = dict(classes=('background', 'person'))
    dataset = SegDataset(
        data_root=root, metainfo=meta, label_map={0: 0, 255: 1}, pipeline=LOAD
    )
    assert labels(dataset).tolist() == [[0, 1]]


def test_binary_masks_of_0_and_255_are_reported(tmp_path, warnings_of_log):
    root = make_root(tmp_path, {n: [[0, 255]] for n in 'abc'})
    SegDataset(data_root=root, metainfo=dict(classes=('background', 'person')))
    (line,) = warnings_of_log
    assert 'class 1 (person) and any other but 0 never occurs; 255 is ignored' in line
    assert 'label_map={0: 0, 255: 1}' in line
    warnings_of_log.clear()
    good = make_root(tmp_path / 'good', {'a': [[0, 255]], 'b': [[0, 1]]})
    SegDataset(data_root=good, metainfo=dict(classes=('background', 'person')))
    parts = make_root(tmp_path / 'parts', {'a': [[0, 4]]})
    Humans29Dataset(data_root=parts, metainfo=dict(classes=('Background', 'Torso')))
    assert warnings_of_log == []
    nothing = make_root(tmp_path / 'nothing', {'a': [[255, 255]]})
    SegDataset(data_root=nothing, metainfo=dict(classes=('background', 'person')))
    assert '255 is ignored' in warnings_of_log[0]


def test_mask_kinds(tmp_path):
    values = np.array([[0, 1, 2, 1]], np.uint8)
    palette_image = Image.fromarray(values, 'P')
    palette_image.putpalette([9, 8, 7, 250, 0, 0, 0, 250, 0])
    kinds = {
        'gray': Image.fromarray(values),
        'palette': palette_image,
        'deep': Image.fromarray(values.astype(np.uint16)),
    }
    root = make_root(tmp_path, kinds)
    dataset = SegDataset(data_root=root, metainfo=ABC, pipeline=LOAD)
    for index in range(3):
        assert labels(dataset, index).tolist() == values.tolist()
    binary = make_root(tmp_path / 'one_bit', {'i': Image.fromarray(values == 1)})
    dataset = SegDataset(data_root=binary, metainfo=ABC, pipeline=LOAD)
    assert labels(dataset).tolist() == [[0, 1, 0, 1]]


def test_color_masks_need_a_palette(tmp_path):
    colors = np.array([[[9, 8, 7], [250, 0, 1]]], np.uint8)
    root = make_root(tmp_path, {'i': Image.fromarray(colors)})
    plain = SegDataset(data_root=root, metainfo=ABC, pipeline=LOAD)
    with pytest.raises(ValueError, match=r'i.png: it holds colors \(mode RGB\)'):
        plain[0]
    load = dict(type='sapiens2_mm.LoadSegAnnotations', palette=[(250, 0, 1), (9, 8, 7)])
    known = SegDataset(data_root=root, metainfo=ABC, pipeline=[LOAD[0], load])
    assert labels(known).tolist() == [[1, 0]]
    load = {**load, 'palette': [(1, 0, 250), (9, 8, 7)]}  # BGR order
    other = SegDataset(data_root=root, metainfo=ABC, pipeline=[LOAD[0], load])
    with pytest.raises(ValueError, match=r'1 pixels .*palette \(RGB\).*250, 0, 1'):
        other[0]


def test_unknown_pixel_values_name_the_file(tmp_path):
    root = make_root(tmp_path, {'i': [[0, 3, 7]]})
    dataset = SegDataset(data_root=root, metainfo=ABC, pipeline=LOAD)
    with pytest.raises(
        ValueError, match=r'i.png: pixel values 3 \(1 px\), 7 \(1 px\) .*3 cl'
    ):
        dataset[0]
    high = Image.fromarray(np.array([[0, 256 + 1]], np.uint16))
    root = make_root(tmp_path / 'high', {'i': high})
    dataset = SegDataset(data_root=root, metainfo=ABC, pipeline=LOAD)
    with pytest.raises(ValueError, match=r'pixel values 257 \(1 px\)'):
        dataset[0]


def test_size_mismatch_names_both_files(tmp_path):
    root = make_root(tmp_path, {'i': [[0, 1]]})
    Image.new('RGB', (3, 1)).save(tmp_path / 'rgb' / 'i.jpg')
    dataset = SegDataset(data_root=root, metainfo=ABC, pipeline=LOAD)
    with pytest.raises(ValueError, match=r'i.png: .* image .*i.jpg.* got \(1, 2\)'):
        dataset[0]


def test_images_without_masks(tmp_path):
    root = make_root(tmp_path, {'i': [[0, 1]]})
    for prefix in (dict(img_path='rgb'), dict(img_path='rgb', seg_map_path=None)):
        dataset = SegDataset(
            data_root=root,
            metainfo=ABC,
            data_prefix=prefix,
            test_mode=True,
            pipeline=LOAD,
        )
        assert 'gt_seg_map' not in dataset[0]
    with pytest.raises(ValueError, match='training needs seg_map_path'):
        SegDataset(data_root=root, metainfo=ABC, data_prefix=dict(img_path='rgb'))


@pytest.mark.parametrize(
    'metainfo, error, message',
    [
        (
            dict(classes=('water')),
            ValueError,
            r"got 'water'; .* trailing comma: \('name',\)",
        ),
        (
            dict(CLASSES=('a',)),
            ValueError,
            r"\['CLASSES'\], expected \('classes'",
        ),
        (
            dict(classes=('a',), PALETTE=[(1, 2, 3)]),
            ValueError,
            r"unknown metainfo \['PALETTE'\], expected .*'palette'",
        ),
        (dict(classes=('a',), color=1), ValueError, r"metainfo \['color'\]"),
        (dict(classes=('a', 'a')), ValueError, 'different names'),
        (dict(classes=()), ValueError, 'list of 1 to 255 different names'),
        (dict(classes=3), ValueError, r'must be a list of .*got 3'),
        (None, ValueError, r'must be a list of .*got None'),
        (
            dict(classes=('a', 'b'), palette=[(1, 2, 3)]),
            ValueError,
            r'expected 2 RGB .*got \[\(1, 2, 3\)\]',
        ),
        (
            dict(classes=('a',), palette=[(1, 2, 300)]),
            ValueError,
            'RGB colors of 0 to 255',
        ),
        (
            dict(classes=('a', 'b'), swap_classes=[('a', 'x')]),
            ValueError,
            r"unknown names: \['x'\]",
        ),
        (
            dict(classes=('a', 'b', 'c'), swap_classes=[('a', 'b'), ('b', 'c')]),
            ValueError,
            'each once',
        ),
    ],
)
def test_faulty_class_lists(tmp_path, metainfo, error, message):
    root = make_root(tmp_path, {'i': [[0]]})
    with pytest.raises(error, match=message):
        SegDataset(data_root=root, metainfo=metainfo)


def test_classes_of_a_file(tmp_path):
    root = make_root(tmp_path, {'i': [[0]]})
    names = tmp_path / 'classes.txt'
    names.write_text('a\nb\n')
    dataset = SegDataset(data_root=root, metainfo=dict(classes=str(names)))
    assert list(dataset.metainfo['classes']) == ['a', 'b']
    names.write_text('a\na\n')
    with pytest.raises(ValueError, match=r"different names.*\['a', 'a'\]"):
        SegDataset(data_root=root, metainfo=dict(classes=str(names)))


def test_one_class_with_one_color(tmp_path):
    root = make_root(tmp_path, {'i': [[0]]})
    meta = dict(classes=('water',), palette=[(1, 2, 3)])
    assert SegDataset(data_root=root, metainfo=meta).metainfo['palette'] == [(1, 2, 3)]


def test_sides_without_pairs_are_reported(tmp_path, warnings_of_log):
    root = make_root(tmp_path, {'i': [[0]]})
    classes = ('background', 'left_sleeve', 'right_sleeve')
    dataset = SegDataset(data_root=root, metainfo=dict(classes=classes))
    assert "['left_sleeve', 'right_sleeve'] seem to be sides" in warnings_of_log[0]
    assert dataset.metainfo['flip_pairs'] == []
    warnings_of_log.clear()
    swap = [('left_sleeve', 'right_sleeve')]
    meta = dict(classes=classes, swap_classes=swap)
    dataset = SegDataset(data_root=root, metainfo=meta)
    assert dataset.metainfo['flip_pairs'] == [(1, 2)]
    assert warnings_of_log == []


def test_default_colors_differ(tmp_path):
    root = make_root(tmp_path, {'i': [[0]]})
    names = tuple(f'c{i}' for i in range(40))
    palette = SegDataset(data_root=root, metainfo=dict(classes=names)).metainfo[
        'palette'
    ]
    assert palette[0] == (0, 0, 0) and len(set(palette)) == 40


def test_missing_files(tmp_path):
    root = make_root(tmp_path, {'i': [[0]], 'j': [[0]]})
    build = dict(type='sapiens2_mm.SegDataset', data_root=root, metainfo=ABC)
    with pytest.raises(FileNotFoundError, match=r"no file in '.*/pics' ends in"):
        DATASETS.build({**build, 'data_prefix': dict(img_path='pics')})
    with pytest.raises(FileNotFoundError, match=r'no\.txt'):
        DATASETS.build({**build, 'ann_file': 'no.txt'})
    (tmp_path / 'names.txt').write_text('i\nq\n')
    with pytest.raises(
        FileNotFoundError, match=r"1 of 2 samples have no image file in .*rgb.*\['q'\]"
    ):
        DATASETS.build({**build, 'ann_file': 'names.txt'})
    (tmp_path / 'seg' / 'j.png').unlink()
    with pytest.raises(
        FileNotFoundError, match=r"no mask \(NAME\.png\) file in .*seg, such as \['j'\]"
    ):
        DATASETS.build(build)
    (tmp_path / 'bad.json').write_text('{"a": 1}')
    with pytest.raises(ValueError, match=r'bad.json: sample: expected a list'):
        DATASETS.build({**build, 'ann_file': 'bad.json'})
    (tmp_path / 'empty').mkdir()
    with pytest.raises(FileNotFoundError, match=r'no file in .*empty'):
        DATASETS.build(
            {**build, 'data_prefix': dict(img_path='empty'), 'test_mode': True}
        )
    Image.new('RGB', (1, 1)).save(tmp_path / 'rgb' / 'i.png')
    with pytest.raises(ValueError, match='have the same name'):
        DATASETS.build(build)


def test_faulty_arguments(tmp_path):
    root = make_root(tmp_path, {'i': [[0]]})
    with pytest.raises(ValueError, match=r"source must be one of .*got 'coco'"):
        Humans29Dataset(data_root=root, source='coco')
    with pytest.raises(ValueError, match='without label_map'):
        Humans29Dataset(data_root=root, source='dome34', label_map={0: 0})
    with pytest.raises(ValueError, match='label_map excludes reduce_zero_label'):
        SegDataset(data_root=root, metainfo=ABC, label_map={}, reduce_zero_label=True)
    for value in (-1, 256):
        with pytest.raises(ValueError, match=f'must be 0 to 255, got {value}'):
            SegDataset(data_root=root, metainfo=ABC, ignore_index=value)
    with pytest.raises(ValueError, match=r"unknown folders \['img'\]"):
        SegDataset(data_root=root, metainfo=ABC, data_prefix=dict(img='rgb'))
    with pytest.raises(ValueError, match=r'targets must be 0 to 2 or 255.*\{4: 3\}'):
        SegDataset(data_root=root, metainfo=ABC, label_map={0: 0, 4: 3})
    with pytest.raises(ValueError, match=r"classes \['Nose'\] are not among the 29"):
        Humans29Dataset(data_root=root, metainfo=dict(classes=('Torso', 'Nose')))


def test_own_classes_keep_their_background(tmp_path):
    """Class 0 may hold parts of a person that are not labeled."""
    root = make_root(tmp_path, {'i': [[0, 1], [0, 0]]})
    steps = [*LOAD, dict(type='sapiens2_mm.RandomBackground', prob=1.0)]
    kept = SegDataset(data_root=root, metainfo=ABC, pipeline=steps)[0]['img']
    plain = SegDataset(data_root=root, metainfo=ABC, pipeline=LOAD)[0]['img']
    assert np.array_equal(kept, plain)
    pasted = SegDataset(
        data_root=root, metainfo=ABC, pipeline=steps, in_the_wild=False
    )[0]['img']
    assert not np.array_equal(pasted, plain)
    assert Humans29Dataset(data_root=root)[0]['in_the_wild'] is False
