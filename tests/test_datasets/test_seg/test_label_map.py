import numpy as np
import pytest

from sapiens2_mm.datasets.seg.label_map import (
    UNKNOWN,
    compose_label_map,
    label_lookup,
)


def test_lookup_reduces_first_then_maps():
    plain = label_lookup(3)
    assert plain[[0, 1, 2, 3, 255, 256]].tolist() == [0, 1, 2, UNKNOWN, 255, UNKNOWN]
    lookup = label_lookup(2, {0: 1, 1: 255, 2: 0}, reduce_zero_label=True)
    assert lookup[[0, 1, 2, 3, 4, 255]].tolist() == [255, 1, 255, 0, UNKNOWN, 255]
    assert lookup.dtype == np.int16 and not lookup.flags.writeable


def test_faulty_label_maps():
    for wrong in ([0, 1], [], 'ab', 5):
        with pytest.raises(ValueError, match='label_map must be a dict') as info:
            compose_label_map(wrong, 'ab', 'ab')
        assert str(info.value).endswith(f'got {wrong!r}')
    for wrong in ({-1: 0}, {65536: 0}, {0: 0.5}, {0: 'a'}):
        with pytest.raises(ValueError, match='pixel values must be 0 to 65535') as info:
            compose_label_map({1: 1, **wrong}, 'ab', 'ab')
        assert str(info.value).endswith(f'got {wrong}')
    assert compose_label_map({'0': 1, 65535: 255}, 'ab', 'ab') == {0: 1, 65535: 255}
