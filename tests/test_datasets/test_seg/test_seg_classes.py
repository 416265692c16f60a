import pytest

from sapiens2_mm.datasets.seg.label_map import compose_label_map
from sapiens2_mm.datasets.seg.seg_classes import check_classes, flip_pairs, make_palette


@pytest.mark.parametrize('classes', [3, (1, 2), 'ab', [None]])
def test_class_lists_that_are_none(classes):
    with pytest.raises(TypeError, match=r'Own: .*must be a list of names, got'):
        check_classes(classes, classes, 'Own')


def test_labels_have_8_bits():
    names = [f'c{i}' for i in range(256)]
    check_classes(names[:255], names, 'Own')
    with pytest.raises(ValueError, match=r'classes must be 1 to 255 .*8 bits.*got 256'):
        check_classes(names, names, 'Own')


@pytest.mark.parametrize('palette', ['random', [0, 0, 0], [(0, 0)], [(0, 0, 'x')]])
def test_palettes_that_are_none(palette):
    with pytest.raises(ValueError, match='palette: expected 1 RGB colors of 0 to 255'):
        make_palette(('a',), palette, {})


@pytest.mark.parametrize('pairs', [('a', 'b'), [('a', 'b', 'c')], [('a',), ('b',)]])
def test_pairs_that_are_none(pairs):
    with pytest.raises(ValueError, match='expected pairs of different class names'):
        flip_pairs('abc', pairs, 'abc')


def test_faulty_label_maps():
    with pytest.raises(TypeError, match='cannot convert dictionary'):
        compose_label_map([0, 1], 'ab', 'ab')
    for wrong in ({-1: 0}, {65536: 0}, {0: 0.5}, {0: 'a'}):
        with pytest.raises(ValueError, match='pixel values must be 0 to 65535') as info:
            compose_label_map({1: 1, **wrong}, 'ab', 'ab')
        assert str(info.value).endswith(f'got {wrong}')
    assert compose_label_map({'0': 1, 65535: 255}, 'ab', 'ab') == {0: 1, 65535: 255}
