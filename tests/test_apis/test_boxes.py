import json

import numpy as np
import pytest

from sapiens2_mm.apis.boxes import BoxFile, check_boxes


@pytest.fixture
def write(tmp_path):
    """Writes a COCO-style file of one box per file name, [i, 0, 10, 10]."""

    def write(*names, annotations=None):
        images = [dict(id=i, file_name=name) for i, name in enumerate(names)]
        if annotations is None:
            annotations = [
                dict(image_id=i, bbox=[i, 0, 10, 10]) for i in range(len(names))
            ]
        path = tmp_path / 'boxes.json'
        path.write_text(json.dumps(dict(images=images, annotations=annotations)))
        return path

    return write


def test_pictures_are_matched_by_their_folders(write, tmp_path, log):
    file = BoxFile.read(write('B/1.png', './A/2.png', '3.png', str(tmp_path / '4.png')))
    paths = [str(tmp_path / name) for name in ('A/1.png', 'A/2.png', '3.png', '4.png')]
    matched = file.match(paths)
    assert matched == {
        paths[1]: 'A/2.png',
        paths[2]: '3.png',
        paths[3]: str(tmp_path / '4.png'),
    }
    assert file.boxes['A/2.png'] == (1, [[1, 0, 10, 10]])
    assert f'no entry for 1 of 4 pictures, such as {paths[0]}' in log.text
    log.clear()
    assert file.match(['x/B/1.png']) == {'x/B/1.png': 'B/1.png'}
    assert 'no entry' not in log.text
    assert file.match(['x/1.png', 'B1.png']) == {}
    assert 'no entry for 2 of 2 pictures, such as x/1.png' in log.text
    assert "file names look like 'B/1.png'" in log.text


@pytest.mark.parametrize(
    'names, paths',
    [
        (['1.png'], ['A/1.png', 'B/1.png']),
        (['1.png', 'A/1.png'], ['A/1.png']),
    ],
)
def test_ambiguity_is_an_error(write, names, paths):
    with pytest.raises(ValueError, match=r'not clear whose boxes .*write longer rel'):
        BoxFile.read(write(*names)).match(paths)


def test_crowds_are_left_out_and_other_ids_kept(write):
    path = write(
        'a.png',
        annotations=[
            dict(image_id=0, bbox=[1, 2, 3, 4], iscrowd=1),
            dict(image_id=0, bbox=[5, 6, 7, 8]),
        ],
    )
    assert BoxFile.read(path).boxes == {'a.png': (0, [[5, 6, 7, 8]])}


@pytest.mark.parametrize('names', [['a.png', 'a.png'], ['a.png', './a.png']])
def test_a_name_twice(write, names):
    with pytest.raises(ValueError, match='two images have the same id or file_name'):
        BoxFile.read(write(*names))


@pytest.mark.parametrize(
    'images, annotations, message',
    [
        ([1], [], 'image 0: expected an object'),
        ([dict(id=1)], [], 'image 0: file_name must be a string, got nothing'),
        (
            [],
            [dict(bbox=[0, 0, 9, 9])],
            'annotation 0: image_id must be a number or a string',
        ),
        ([], [dict(image_id=7, bbox=[0, 0, 9, 9])], 'image_id 7 is not an image'),
        (
            [],
            [dict(image_id=[7], bbox=[])],
            'image_id must be a number or a string, got [[]7',
        ),
    ],
)
def test_faulty_file_names_the_entry(tmp_path, images, annotations, message):
    path = tmp_path / 'boxes.json'
    path.write_text(json.dumps(dict(images=images, annotations=annotations)))
    with pytest.raises(ValueError, match=message):
        BoxFile.read(path)
    path.write_text(path.read_text()[:-5])
    with pytest.raises(ValueError, match=r'boxes\.json is not a readable JSON file'):
        BoxFile.read(path)
    path.write_text('[]')
    with pytest.raises(ValueError, match=r'expected an object, got \[\]'):
        BoxFile.read(path)


@pytest.mark.parametrize('box', [None, [], [1, 2, 3], 'text', [1, 2, 'x', 4], 7])
def test_one_bad_box_of_a_file_costs_no_other(write, box, log):
    path = write(
        'a.png',
        annotations=[dict(image_id=0, bbox=box), dict(image_id=0, bbox=[5, 6, 7, 8])],
    )
    people = check_boxes(BoxFile.read(path).boxes['a.png'][1], 'xywh', (50, 40), 'a')
    assert np.array_equal(people.boxes, [[5, 6, 12, 14]])
    (named,) = people.skipped
    assert named.startswith('box 0 = ') and 'not finite' in named
    assert f'a: left out {named}' in log.text
