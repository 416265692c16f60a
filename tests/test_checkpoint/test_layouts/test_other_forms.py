from pathlib import Path

import pytest
import torch

from sapiens2_mm.checkpoint import CheckpointError, load_backbone
from sapiens2_mm.checkpoint.layouts.convert import convert_checkpoint

WQ = 'blocks.0.attn.wq'
FORMS = {
    f'base_model.model.{WQ}.lora_A.default.weight': 'LoRA adapters: .*lora_A.*; merge',
    f'{WQ}.lora_B.weight': 'LoRA adapters: .*lora_B.*; merge',
    f'{WQ}.weight.absmax': 'quantized weights: .*absmax.*; load the file that',
    f'{WQ}.SCB': 'quantized weights: .*SCB',
    f'{WQ}.qweight': 'quantized weights: .*qweight',
}


@pytest.mark.parametrize('key', FORMS)
def test_what_the_file_holds_is_said(key, backbone, save):
    state = {**backbone.state_dict(), key: torch.zeros(2)}
    source = save(state, 'other.pth')
    with pytest.raises(CheckpointError, match=f'{source} holds {FORMS[key]}'):
        load_backbone(backbone, source)
    target = Path(source).with_name('converted.safetensors')
    with pytest.raises(CheckpointError, match=f'{source} holds {FORMS[key]}'):
        convert_checkpoint(source, target, 'official')
    assert not target.exists()


def test_an_exported_program_is_no_weight_file(backbone, tmp_path):
    program = torch.export.export(torch.nn.Linear(2, 2), (torch.zeros(1, 2),))
    torch.export.save(program, tmp_path / 'program.pt2')
    (tmp_path / 'program.pt2').rename(tmp_path / 'program.pth')
    with pytest.raises(CheckpointError, match=r'is a torch\.export program'):
        load_backbone(backbone, tmp_path / 'program.pth')


def test_a_model_with_adapters_of_its_own_loads_them(backbone, save):
    attention = backbone.blocks[0].attn
    attention.lora_A = torch.nn.Linear(32, 2)
    source = save(backbone.state_dict(), 'own.pth')
    expected = attention.lora_A.weight.clone()
    torch.nn.init.zeros_(attention.lora_A.weight)
    load_backbone(backbone, source)
    assert torch.equal(attention.lora_A.weight, expected)
