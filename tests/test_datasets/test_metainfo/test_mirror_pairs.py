import pytest

from sapiens2_mm.datasets.metainfo.mirror_pairs import mirrored_ids


def test_pairs_change_places():
    assert mirrored_ids([(1, 3)], 5).tolist() == [0, 3, 2, 1, 4]
    assert mirrored_ids([(1, 255), (255, 2)], 3, 255).tolist() == [0, 255, 255]
    assert mirrored_ids([[3, 1]], 4, 0).tolist() == [0, 3, 2, 1]


@pytest.mark.parametrize(
    'pairs',
    [
        [(0, 1), (2, 5)],  # outside
        [(0, 1), (2, -1)],
        [(0, 1), (1, 2)],  # twice
        [(2, 2)],
        [('left', 'right')],
        [(1, 2, 3)],
        [2],
        [(1, 255)],  # of an ignored partner nothing is known
        [(1.5, 2)],
        3,
    ],
)
def test_pairs_that_are_none(pairs):
    message = r'must be two different ids of the 5 classes .* metainfo'
    with pytest.raises(ValueError, match=message) as info:
        mirrored_ids(pairs, 5)
    last = pairs[-1] if isinstance(pairs, list) else pairs
    assert f'flip_pairs: {last!r} must' in str(info.value)
