from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip('mmpretrain')

from sapiens2_mm.engine.evidence import pretraining
from sapiens2_mm.engine.evidence.pretraining import (
    ARMS,
    arm_config,
    encode,
    pretrain,
    raw_patches,
)

SECONDS = 6


@pytest.fixture(scope='module')
def trained(repo_dir, data_dir, tmp_path_factory):
    """(arm, seed) -> folder and what ``pretrain`` returned, by a clock of ours.

    A step takes a second, and two in reconstruction's run.
    """
    found = {}
    monkeypatch = pytest.MonkeyPatch()
    for arm, seed in (*[(arm, 1) for arm in ARMS], ('joint', 2)):
        root = data_dir / 'synthetic_humans'
        cfg = arm_config(arm, repo_dir / 'configs/pretrain', root)
        cfg.train_dataloader.batch_size = 2
        folder = tmp_path_factory.mktemp('arm')
        clock = count(step=2 if arm == 'reconstruction' else 1)
        fake = SimpleNamespace(process_time=partial(next, clock))
        monkeypatch.setattr(pretraining, 'time', fake)
        found[arm, seed] = folder, pretrain(cfg, folder, seed, SECONDS, (0, 0.5, 1))
    monkeypatch.undo()
    return found


@pytest.mark.slow
def test_arms_have_equal_processor_time(trained):
    for (arm, _), (folder, training) in trained.items():
        assert training['seconds'] == SECONDS
        assert training['steps'] == (3 if arm == 'reconstruction' else 6)
        written = {path.stem for path in folder.glob('student_*.safetensors')}
        assert written == {'student_0', 'student_0.5', 'student_1'}


@pytest.mark.slow
def test_seeds_decide_where_encoders_start(trained):
    first = load_file(trained['joint', 1][0] / 'student_0.safetensors')
    for job, alike in ((('joint, contrast off', 1), True), (('joint', 2), False)):
        folder, _ = trained[job]
        other = load_file(folder / 'student_0.safetensors')
        assert all(torch.equal(first[name], other[name]) for name in first) == alike
        after = load_file(folder / 'student_1.safetensors')
        assert not torch.equal(after['cls_token'], other['cls_token'])


@pytest.mark.slow
def test_only_the_contrast_is_off(trained):
    off, joint = (trained[arm, 1][1] for arm in ('joint, contrast off', 'joint'))
    assert off['loss_contrast'] == 0 < joint['loss_contrast']
    assert off['loss_koleo'] != 0 and off['loss_mae'] > 0
    assert 'loss_koleo' not in trained['reconstruction', 1][1]


@pytest.mark.slow
def test_features(trained, repo_dir):
    cfg = arm_config('joint', repo_dir / 'configs/pretrain', 'unused')
    images = torch.randint(256, (3, 3, 128, 96), dtype=torch.uint8)
    path = trained['joint', 1][0] / 'student_1.safetensors'
    features = encode(cfg, path, images, batch_size=2)
    assert features.shape == (3, 16, 12, 96)
    torch.testing.assert_close(features[2:], encode(cfg, path, images[2:]))


def test_raw_patches():
    images = torch.arange(2 * 3 * 4 * 6).reshape(2, 3, 4, 6)
    patches = raw_patches(images, 2)
    assert patches.shape == (2, 2, 3, 12)
    assert torch.equal(patches[1, 0, 2], images[1, :, :2, 4:].flatten().float())
