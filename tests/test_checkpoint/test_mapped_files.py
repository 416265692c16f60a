"""A model keeps its numbers while its file is written anew."""

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tiny_models import model_cfg
from toy_run import ToyModel, toy_runner

from sapiens2_mm.apis import init_model
from sapiens2_mm.checkpoint import load_backbone
from sapiens2_mm.checkpoint.layouts.convert import convert_checkpoint
from sapiens2_mm.models.selfsup.export import save_backbone


def state_of(model: torch.nn.Module) -> dict:
    return {key: value.clone() for key, value in model.state_dict().items()}


def assert_keeps(model: torch.nn.Module, before: dict) -> None:
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key]), key


def write_backbone(path: Path) -> None:
    weights = init_model(model_cfg('normal'), path).state_dict()
    save_backbone(weights, path, 'student')


# A writer -> the file, and how it is written onto itself.
WRITERS: dict[str, tuple[str, Callable]] = {
    'ours': ('x.safetensors', lambda path: convert_checkpoint(path, path, 'ours')),
    'official': (
        'x.safetensors',
        lambda path: convert_checkpoint(path, path, 'official', torch.bfloat16),
    ),
    'transformers': (
        'folder',
        lambda path: convert_checkpoint(path, path, 'transformers'),
    ),
    'save_backbone': ('x.safetensors', write_backbone),
}


@pytest.mark.parametrize('writer', WRITERS)
def test_a_file_is_written_onto_itself(writer, build, save, tmp_path):
    name, write = WRITERS[writer]
    path = tmp_path / name
    to = 'transformers' if name == 'folder' else 'ours'
    convert_checkpoint(save(build('normal').state_dict()), path, to)
    model = init_model(model_cfg('normal'), path)
    before = state_of(model)
    write(path)
    assert_keeps(model, before)
    again = init_model(model_cfg('normal'), path, strict=writer != 'save_backbone')
    for key, value in again.state_dict().items():
        expected = before[key].bfloat16() if writer == 'official' else before[key]
        if key.startswith('backbone.') or writer != 'save_backbone':
            torch.testing.assert_close(value, expected.to(value), rtol=0, atol=0)


def test_a_run_writes_the_file_that_it_started_from(tmp_path):
    toy_runner(tmp_path, iterations=1).train()
    path = tmp_path / 'iter_1.pth'
    model = ToyModel()
    load_backbone(model.backbone, str(path))
    before = state_of(model)
    toy_runner(tmp_path, iterations=1, load_from=str(path)).train()
    assert_keeps(model, before)
    load_backbone(model.backbone, str(path))  # the new one
    name = 'backbone.cls_token'
    assert not torch.equal(model.state_dict()[name], before[name])


@pytest.mark.parametrize('name', ['x.safetensors', 'x.pth'])
def test_a_copy_of_a_model_does_without_its_file(name, build, save):
    path = Path(save(build('normal').state_dict(), name))
    model = copy.deepcopy(init_model(model_cfg('normal'), path))
    before = state_of(model)
    path.write_bytes(b'')  # in place, as cp does
    assert_keeps(model, before)
