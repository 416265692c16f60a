import pytest

from sapiens2_mm.engine.evidence.probe_data import load_probe_data


@pytest.fixture(scope='session')
def probe_data(data_dir):
    """The train split of the shipped people."""
    return load_probe_data(data_dir / 'synthetic_humans', 'annotations/train.json')
