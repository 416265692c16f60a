import pytest
import torch
from mmengine.model import BaseTTAModel
from toy_run import ToyModel, toy_runner

from sapiens2_mm.checkpoint import CheckpointError


def weights(model):
    return {key: value.clone() for key, value in model.state_dict().items()}


FORMS = {
    'bare.safetensors': lambda s: {
        k[9:]: v for k, v in s.items() if k[:9] == 'backbone.'
    },
    'module.pth': lambda s: {f'module.{key}': value for key, value in s.items()},
    'wrapped.pth': lambda s: {'state_dict': s},
    'model.pth': lambda s: {'model': s},
    'decode_head.safetensors': lambda s: {
        key.replace('head.', 'decode_head.'): value for key, value in s.items()
    },
}


@pytest.mark.parametrize('name', FORMS)
def test_load_from_before_training(name, save, tmp_path):
    saved = weights(ToyModel())
    runner = toy_runner(tmp_path, load_from=save(FORMS[name](saved), name))
    runner.call_hook('before_run')  # builds the EMA model
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    runner.load_or_resume()
    ema = runner.hooks[[type(h).__name__ for h in runner.hooks].index('EMAHook')]
    for model in (runner.model, ema.ema_model.module):
        for key, value in model.state_dict().items():
            if name != 'bare.safetensors' or key.startswith('backbone.'):
                assert torch.equal(value, saved[key]), key


def test_new_last_layer_gives_one_warning(save, tmp_path, lines):
    saved = weights(ToyModel(17))
    runner = toy_runner(tmp_path, ToyModel(5), 1, load_from=save(saved))
    runner.train()
    warnings = [text for level, text in lines if 'start untrained' in text]
    assert len(warnings) == 1
    assert 'head.final_layer.weight: checkpoint (17, 32), model (5, 32)' in warnings[0]
    assert 'head.final_layer.bias: checkpoint (17,), model (5,)' in warnings[0]
    assert not [text for _, text in lines if 'do not match exactly' in text]


def test_summary_is_one_line(save, tmp_path, lines):
    runner = toy_runner(tmp_path, iterations=1, load_from=save(weights(ToyModel())))
    runner.logger.setLevel('INFO')
    runner.train()
    count = len(ToyModel().state_dict())
    found = [text for _, text in lines if 'keys matched' in text]
    assert len(found) == 1
    assert f'{count} keys matched, 0 missing, 0 unexpected' in found[0]
    bare = save(FORMS['bare.safetensors'](weights(ToyModel())), 'bare.safetensors')
    lines.clear()
    runner = toy_runner(tmp_path, iterations=1, load_from=bare)
    runner.logger.setLevel('INFO')
    runner.train()
    (found,) = [text for _, text in lines if 'keys matched' in text]
    assert f'{count - 2} keys matched, 2 missing, 0 unexpected' in found


def test_testing_is_strict(save, tmp_path):
    saved = weights(ToyModel())
    toy_runner(tmp_path, load_from=save(FORMS['decode_head.safetensors'](saved))).test()
    bare = save(FORMS['bare.safetensors'](saved), 'b.safetensors')
    with pytest.raises(CheckpointError, match=r'missing .*head\.final_layer\.weight'):
        toy_runner(tmp_path, load_from=bare).test()
    other = save(weights(ToyModel(5)), 'o.safetensors')
    with pytest.raises(CheckpointError, match=r'checkpoint \(5, 32\), model \(2, 32\)'):
        toy_runner(tmp_path, load_from=other).test()


def test_nothing_in_common_is_an_error(save, tmp_path):
    path = save({'fc.weight': torch.zeros(2)})
    with pytest.raises(CheckpointError, match='no key of'):
        toy_runner(tmp_path, load_from=path).train()
    with pytest.raises(CheckpointError, match='no key of'):
        toy_runner(tmp_path, load_from=path).test()


def test_4k_checkpoint_is_named(save, tmp_path):
    path = save(weights(ToyModel(use_tokenizer=True, img_size=64)))
    for run in ('train', 'test'):
        with pytest.raises(CheckpointError, match=r'4K checkpoint.*use_tokenizer=True'):
            getattr(toy_runner(tmp_path, load_from=path), run)()


def test_pretrained_backbone_is_loaded_when_training_starts(save, tmp_path):
    path = save(FORMS['bare.safetensors'](weights(ToyModel())), 'b.safetensors')
    model = ToyModel(init_cfg=dict(type='Pretrained', checkpoint=path))
    model.init_weights()
    expected = weights(model)
    runner = toy_runner(
        tmp_path,
        ToyModel(init_cfg=dict(type='Pretrained', checkpoint=path)),
        iterations=1,
        checkpoint=dict(save_optimizer=False),
    )
    runner._init_model_weights()
    for key, value in runner.model.state_dict().items():
        if key.startswith('backbone.'):
            assert torch.equal(value, expected[key])


def start(runner):
    """The begin of ``runner.train()``."""
    runner.call_hook('before_run')
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    runner._init_model_weights()
    runner.load_or_resume()


def test_a_file_for_the_whole_model_is_loaded_strictly(save, tmp_path, lines):
    saved = weights(ToyModel())

    def start_from(state, name, **options):
        model = ToyModel(5 if name == 'new_head.pth' else 2)
        model.init_cfg = dict(type='Pretrained', checkpoint=save(state, name))
        runner = toy_runner(tmp_path, model, **options)
        start(runner)
        return runner.model.state_dict()

    for key, value in start_from(FORMS['module.pth'](saved), 'whole.pth').items():
        assert torch.equal(value, saved[key]), key
    loaded = start_from(saved, 'new_head.pth')
    assert torch.equal(loaded['backbone.cls_token'], saved['backbone.cls_token'])
    assert [text for _, text in lines if 'start untrained' in text]
    with pytest.raises(CheckpointError, match='no key of'):
        start_from({'fc.weight': torch.zeros(2)}, 'other.pth')
    other = {key: value + 1 for key, value in saved.items()}
    loaded = start_from(saved, 'both.pth', load_from=save(other, 'other.pth'))
    assert torch.equal(loaded['backbone.cls_token'], other['backbone.cls_token'])


def test_rotary_periods_survive_training_ema_and_saving(save, tmp_path):
    from sapiens2_mm.checkpoint import read_checkpoint

    key = 'backbone.rope_embed.periods'
    saved = weights(ToyModel())
    saved[key] = (saved[key].float() * 1.25).bfloat16()  # not what the formula gives
    toy_runner(tmp_path, iterations=2, load_from=save(saved)).train()
    checkpoint = read_checkpoint(tmp_path / 'iter_2.pth')
    for state, name in (
        (checkpoint['state_dict'], key),
        (checkpoint['ema_state_dict'], f'module.{key}'),
    ):
        assert state[name].dtype == torch.bfloat16
        assert torch.equal(state[name], saved[key])
    runner = toy_runner(tmp_path, iterations=2, load_from=str(tmp_path / 'iter_2.pth'))
    runner.test()
    periods = runner.model.backbone.rope_embed.periods
    assert torch.equal(periods, saved[key])
    for cast in ('float', 'bfloat16', 'half', 'double'):
        periods = getattr(runner.model, cast)().state_dict()[key]
        assert periods.dtype == torch.bfloat16
        assert torch.equal(periods, saved[key])


def test_model_inside_a_tta_wrapper(save, tmp_path):
    class ToyTTA(BaseTTAModel):
        def merge_preds(self, data_samples_list):
            return [samples[0] for samples in data_samples_list]

    saved = weights(ToyModel())
    path = save(FORMS['decode_head.safetensors'](saved))
    runner = toy_runner(tmp_path, ToyTTA(ToyModel()), load_from=path)
    runner.call_hook('before_run')
    runner.load_or_resume()
    for key, value in runner.model.module.state_dict().items():
        assert torch.equal(value, saved[key]), key


def test_added_weights_of_the_backbone_must_be_named(save, tmp_path, lines):
    def adapted():
        model = ToyModel()
        model.backbone.adapter = torch.nn.Linear(2, 2)
        return model

    path = save(weights(ToyModel()))
    with pytest.raises(CheckpointError, match=r'missing .*backbone\.adapter\.weight'):
        toy_runner(tmp_path, adapted(), load_from=path).train()
    hooks = dict(
        load=dict(type='sapiens2_mm.LoadCheckpointHook', allow_missing=['*.adapter.*'])
    )
    toy_runner(tmp_path, adapted(), 1, load_from=path, extra_hooks=hooks).train()
    assert [text for _, text in lines if 'start untrained' in text]


def test_1k_weights_start_a_4k_model_if_asked_for(save, tmp_path, lines):
    saved = weights(ToyModel(img_size=64))
    path = save(saved)
    tall = dict(use_tokenizer=True, img_size=64)
    with pytest.raises(CheckpointError, match=r"1K.*allow_missing=\['\*tokenizer"):
        toy_runner(tmp_path, ToyModel(**tall), load_from=path).train()
    hook = dict(type='sapiens2_mm.LoadCheckpointHook', allow_missing=['*tokenizer.*'])
    runner = toy_runner(
        tmp_path, ToyModel(**tall), load_from=path, extra_hooks=dict(load=hook)
    )
    start(runner)
    (warning,) = [text for _, text in lines if 'start untrained' in text]
    assert 'missing in the checkpoint: backbone.tokenizer.' in warning
    assert not [text for _, text in lines if 'do not match exactly' in text]
    own = weights(runner.model)
    assert all(torch.equal(own[key], value) for key, value in saved.items())


def test_load_from_copies_nothing_and_keeps_the_parameters(save, tmp_path):
    saved = weights(ToyModel())
    runner = toy_runner(tmp_path, load_from=save(saved))
    before = {n: (p, p.data_ptr()) for n, p in runner.model.named_parameters()}
    runner.call_hook('before_run')
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    runner.load_or_resume()
    for name, value in runner.model.named_parameters():
        parameter, address = before[name]
        assert value is parameter and value.data_ptr() != address
        assert torch.equal(value, saved[name])


def test_file_without_rotary_periods_gives_no_second_warning(save, tmp_path, capfd):
    saved = weights(ToyModel())
    del saved['backbone.rope_embed.periods']
    toy_runner(tmp_path, load_from=save(saved)).test()
    assert 'do not match exactly' not in ''.join(capfd.readouterr())
