import subprocess
import sys

import pytest
from safetensors import safe_open
from safetensors.torch import save_file
from tiny_models import backbone_cfg, randomized

from sapiens2_mm.registry import MODELS


def run(repo_dir, *args) -> subprocess.CompletedProcess:
    command = [sys.executable, 'tools/convert_checkpoint.py', *map(str, args)]
    return subprocess.run(command, cwd=repo_dir, capture_output=True, text=True)


@pytest.fixture
def source(tmp_path):
    state = randomized(MODELS.build(backbone_cfg())).state_dict()
    folder = tmp_path / 'тест é'
    folder.mkdir()
    save_file({f'module.{k}': v for k, v in state.items()}, folder / '人 1.safetensors')
    return folder / '人 1.safetensors'


def test_command_writes_a_folder_for_transformers(repo_dir, source, tmp_path):
    result = run(
        repo_dir, source, tmp_path / 'é hf', '--to', 'transformers', '--dtype', 'bf16'
    )
    assert result.returncode == 0, result.stderr
    assert 'task: pretrain' in result.stdout
    assert (tmp_path / 'é hf' / 'config.json').is_file()
    with safe_open(tmp_path / 'é hf' / 'model.safetensors', 'pt') as file:
        assert file.get_tensor('embeddings.cls_token').element_size() == 2
        assert file.metadata()['source'] == '人 1.safetensors'


def test_command_explains_its_errors(repo_dir, source, tmp_path):
    missing = run(
        repo_dir, tmp_path / 'no.pth', tmp_path / 'a.safetensors', '--to=ours'
    )
    assert missing.returncode != 0
    assert 'no.pth does not exist' in missing.stderr
    usage = run(repo_dir, source, tmp_path / 'a.safetensors', '--to', 'mmpose')
    assert usage.returncode == 2
    assert 'official' in usage.stderr
