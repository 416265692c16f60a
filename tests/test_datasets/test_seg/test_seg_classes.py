import pytest

from sapiens2_mm.datasets.seg.seg_classes import check_classes, flip_pairs, make_palette


@pytest.mark.parametrize('classes', [3, (1, 2), 'ab', [None]])
def test_class_lists_that_are_none(classes):
    with pytest.raises(ValueError, match=r'Own: .*list of 1 to 255'):
        check_classes(classes, classes, 'Own')


def test_labels_have_8_bits():
    names = [f'c{i}' for i in range(256)]
    check_classes(names[:255], names, 'Own')
    with pytest.raises(ValueError, match=r'1 to 255 different names \(labels have 8'):
        check_classes(names, names, 'Own')


@pytest.mark.parametrize('palette', ['random', [0, 0, 0], [(0, 0)], [(0, 0, 'x')]])
def test_palettes_that_are_none(palette):
    with pytest.raises(ValueError, match='palette: expected 1 RGB colors of 0 to 255'):
        make_palette(('a',), palette, {})


@pytest.mark.parametrize(
    'pairs',
    [('a', 'b'), [('a', 'b', 'c')], [('a',), ('b',)], 3, [3], 'ab', [(['a'], 'b')]],
)
def test_pairs_that_are_none(pairs):
    with pytest.raises(ValueError, match='expected pairs of different class names'):
        flip_pairs('abc', pairs, [*'abc'])
