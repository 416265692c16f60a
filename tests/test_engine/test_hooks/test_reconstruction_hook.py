import pytest

from sapiens2_mm.engine.hooks import ReconstructionHook


@pytest.mark.parametrize('kwargs', [dict(interval=0), dict(num_images=0)])
def test_numbers_must_be_positive(kwargs):
    with pytest.raises(ValueError, match='interval and num_images must be positive'):
        ReconstructionHook(**kwargs)
