import pytest
import torch
from tiny_models import backbone, build, save

from sapiens2_mm.apis import Inferencer, init_model

__all__ = ['backbone', 'build', 'save']  # fixtures


@pytest.fixture(scope='module')
def make(repo_dir):
    """``{task: inferencer}`` of tiny random models."""
    made = {}

    def make(*tasks):
        for task in {*tasks} - {*made}:
            pytest.importorskip({'pose': 'mmpose', 'seg': 'mmseg'}.get(task, 'mmcv'))
            (path,) = (repo_dir / 'configs' / task).glob('*tiny*_synthetic-humans-*.py')
            torch.manual_seed(0)
            made[task] = Inferencer(init_model(path))
        return {task: made[task] for task in tasks}

    return make
