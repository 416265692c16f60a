"""Fixtures shared by all tests."""

from pathlib import Path

import pytest
import torch

torch.set_num_threads(min(2, torch.get_num_threads()))


@pytest.fixture(scope='session')
def data_dir() -> Path:
    """The folder ``tests/data``."""
    return Path(__file__).parent / 'data'


@pytest.fixture(scope='session')
def repo_dir() -> Path:
    """The root of the repository."""
    return Path(__file__).parent.parent
