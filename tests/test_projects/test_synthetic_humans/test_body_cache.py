"""What the first build leaves behind, with a stand-in for anny."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from projects.synthetic_humans import body, environment


@pytest.fixture
def cache(monkeypatch, tmp_path) -> Path:
    """A cache with files of another model; anny writes three more."""
    folder = tmp_path / 'v14'
    folder.mkdir()
    (folder / 'load_data_other.safetensors').touch()

    def build(**kwargs) -> torch.nn.Module:
        assert kwargs['rig'] == 'makehuman'
        assert kwargs['topology'] == 'makehuman-full'
        for name in ('load_data_1', 'build_model_data_1', 'build_compact_model_data_1'):
            (folder / f'{name}.safetensors').touch()
        return torch.nn.Linear(1, 1)

    monkeypatch.setenv('ANNY_CACHE_DIR', str(tmp_path))
    monkeypatch.setitem(sys.modules, 'anny', SimpleNamespace(Anny=build))
    return folder


def test_only_own_unread_files_are_deleted(cache):
    assert environment.first_build_pending()
    model = body._build_anny()
    assert not model.training
    assert {path.name for path in cache.iterdir()} == {
        'load_data_other.safetensors',
        'build_compact_model_data_1.safetensors',
    }
    assert not environment.first_build_pending()
