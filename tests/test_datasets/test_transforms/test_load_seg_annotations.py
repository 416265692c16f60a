import pytest

from sapiens2_mm.registry import TRANSFORMS


def make(name, **kwargs):
    return TRANSFORMS.build(dict(type=f'sapiens2_mm.{name}', **kwargs))


def test_load_step_in_a_pipeline_for_inference():
    load = make('LoadSegAnnotations')
    with pytest.raises(ValueError, match=r'remove LoadSegAnnotations .*test_pipeline'):
        load.transform(dict(img_path='a.jpg'))
