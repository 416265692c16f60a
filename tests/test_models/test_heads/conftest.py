"""Inputs of the tests of the pose head."""

import numpy as np
import pytest
import torch


@pytest.fixture
def persons():
    """Keypoints (1, 5, 2) in an input of 48 x 64 (W x H), and their visibility."""
    rng = np.random.default_rng(0)
    persons = []
    for _ in range(3):
        keypoints = rng.uniform((0, 0), (48, 64), (1, 5, 2)).astype(np.float32)
        visible = np.float32([[1, 0, 1, 0.4, 1]])
        persons.append((keypoints, visible))
    return persons


@pytest.fixture
def feats():
    """The backbone's map of 3 persons."""
    torch.manual_seed(0)
    return (torch.randn(3, 32, 4, 3),)
