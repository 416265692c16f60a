import runpy
import sys

import pytest
from safetensors import safe_open
from safetensors.torch import save_file
from tiny_models import backbone_cfg, randomized

from sapiens2_mm.checkpoint import CheckpointError
from sapiens2_mm.registry import MODELS

FOLDER, NAME = '\u0442\u0435\u0441\u0442 \xe9', '\u4eba 1.safetensors'


@pytest.fixture
def run(repo_dir, monkeypatch):
    def run(*args) -> None:
        script = repo_dir / 'tools' / 'convert_checkpoint.py'
        monkeypatch.setattr(sys, 'argv', [str(script), *map(str, args)])
        runpy.run_path(str(script), run_name='__main__')

    return run


@pytest.fixture
def source(tmp_path):
    state = randomized(MODELS.build(backbone_cfg())).state_dict()
    (tmp_path / FOLDER).mkdir()
    path = tmp_path / FOLDER / NAME
    save_file({f'module.{key}': value for key, value in state.items()}, path)
    return path


def test_command_writes_a_folder_for_transformers(run, source, tmp_path, capsys):
    target = tmp_path / FOLDER / 'hf'
    run(source, target, '--to', 'transformers', '--dtype', 'bf16')
    assert 'task: pretrain' in capsys.readouterr().out
    assert (target / 'config.json').is_file()
    with safe_open(target / 'model.safetensors', 'pt') as file:
        assert file.get_tensor('embeddings.cls_token').element_size() == 2
        assert file.metadata()['source'] == NAME


def test_command_explains_its_errors(run, source, tmp_path, capsys):
    target = tmp_path / 'a.safetensors'
    with pytest.raises(FileNotFoundError, match=r'no\.pth does not exist'):
        run(tmp_path / 'no.pth', target, '--to', 'ours')
    with pytest.raises(CheckpointError, match='must end with'):
        run(source, tmp_path / 'a.pth', '--to', 'ours')
    with pytest.raises(SystemExit):
        run(source, target, '--to', 'mmpose')
    assert "invalid choice: 'mmpose'" in capsys.readouterr().err
