import numpy as np
import pytest
import torch

from sapiens2_mm.apis import Inferencer, init_model, share_backbones
from sapiens2_mm.apis.inference import infer
from sapiens2_mm.apis.jobs import make_jobs


def predict(inferencers, photos):
    return list(infer(inferencers, make_jobs(photos, needs_boxes=False), batch_size=2))


@pytest.fixture
def make(repo_dir):
    """Inferencer of a task whose backbone has the weights of ``seed``."""

    def make(task, seed, **options):
        (path,) = (repo_dir / 'configs' / task).glob('*tiny*_synthetic-humans-*.py')
        torch.manual_seed(seed)
        return Inferencer(init_model(path, cfg_options=options))

    return make


def test_equal_backbones_run_once_and_change_nothing(make, data_dir):
    photos = sorted((data_dir / 'synthetic_humans' / 'rgb').glob('*.jpg'))[:3]
    inferencers = [
        make('normal', 0),
        make('albedo', 1),
        make('matting', 0),
        make('pointmap', 0),
    ]
    for other in inferencers[2:]:
        state = inferencers[0].model.backbone.state_dict()
        other.model.backbone.load_state_dict(state)
    expected = predict(inferencers, photos)
    calls = []
    for one in inferencers:
        one.model.backbone.register_forward_hook(lambda *args: calls.append(1))
    assert share_backbones(inferencers) == 2
    found = predict(inferencers, photos)
    for results, before in zip(found, expected, strict=True):
        for result, same in zip(results, before, strict=True):
            for name, values in result.maps.items():
                assert np.array_equal(values, same.maps[name])
    normal, albedo, matting, pointmap = (one.model.backbone for one in inferencers)
    assert normal is matting is pointmap and albedo is not normal
    # In two batches normal, albedo and matting run; pointmap sees what normal saw.
    assert len(calls) == 2 * 3


def test_other_weights_or_settings_are_not_shared(make):
    inferencers = [make('normal', 0), make('albedo', 1)]
    inferencers.append(make('depth', 0, **{'model.backbone.rope_dtype': 'fp32'}))
    inferencers[2].model.backbone.load_state_dict(
        inferencers[0].model.backbone.state_dict()
    )
    before = [one.model.backbone for one in inferencers]
    assert share_backbones(inferencers) == 0
    assert [one.model.backbone for one in inferencers] == before
