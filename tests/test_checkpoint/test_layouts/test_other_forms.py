import pytest
import torch

from sapiens2_mm.checkpoint import CheckpointError, load_backbone

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


def test_a_model_with_adapters_of_its_own_loads_them(backbone, save):
    attention = backbone.blocks[0].attn
    attention.lora_A = torch.nn.Linear(32, 2)
    source = save(backbone.state_dict(), 'own.pth')
    expected = attention.lora_A.weight.clone()
    torch.nn.init.zeros_(attention.lora_A.weight)
    load_backbone(backbone, source)
    assert torch.equal(attention.lora_A.weight, expected)
