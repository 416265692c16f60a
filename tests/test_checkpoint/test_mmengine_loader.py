"""mmengine's own loading functions, once our registry is imported."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.evaluator import Evaluator
from mmengine.infer import BaseInferencer
from mmengine.runner import Runner
from mmengine.runner.checkpoint import _load_checkpoint_with_prefix
from toy_run import ToyData, ToyMetric, ToyModel

from sapiens2_mm.checkpoint import CheckpointError

NUMBERS = itertools.count()
CHECK = """
import sys
{before}
import sapiens2_mm
{after}
from mmengine.runner.checkpoint import CheckpointLoader
names = [CheckpointLoader._get_checkpoint_loader(path).__module__ for path in
         ('a.pth', 'http://x/a.pth', 'https://x/a.pth', 'hf://a/b')]
assert names == ['sapiens2_mm.checkpoint.mmengine_loader'] * 4, names
assert CheckpointLoader._get_checkpoint_loader('torchvision://x').__module__ == (
    'mmengine.runner.checkpoint')
import torch
assert torch.load.__module__ == 'torch.serialization'
"""


@pytest.mark.parametrize(
    'before, after',
    [
        # naming a registry is cheap
        ('', "import sapiens2_mm.registry; assert 'torch' not in sys.modules"),
        ('import mmengine.runner.checkpoint', 'import sapiens2_mm.registry'),
        ('import mmengine.runner', 'import sapiens2_mm.models'),
    ],
)
def test_readers_are_registered_in_either_order_of_import(before, after):
    code = CHECK.format(before=before, after=after)
    subprocess.run([sys.executable, '-c', code], check=True)


def test_a_process_that_only_has_us_installed_reads_as_before():
    code = """
import sapiens2_mm, sys
assert not {'torch', 'mmengine'} & set(sys.modules)
from mmengine.runner.checkpoint import CheckpointLoader
reader = CheckpointLoader._get_checkpoint_loader('a.pth')
assert reader.__module__ == 'mmengine.runner.checkpoint', reader
"""
    subprocess.run([sys.executable, '-c', code], check=True)


def stock_runner(work_dir, **options) -> Runner:
    """mmengine's hooks alone, as a user without our runtime file has them."""
    torch.manual_seed(0)
    loader = dict(batch_size=2, num_workers=0, dataset=ToyData())
    order = dict(sampler=dict(type='DefaultSampler', shuffle=False))
    return Runner(
        ToyModel(),
        work_dir=str(work_dir),
        experiment_name=f'stock{next(NUMBERS)}',
        train_dataloader=dict(loader, sampler=dict(type='InfiniteSampler')),
        train_cfg=dict(by_epoch=False, max_iters=4, val_interval=1),
        val_dataloader=dict(loader, **order),
        val_cfg=dict(),
        val_evaluator=Evaluator([ToyMetric()]),
        test_dataloader=dict(loader, **order),
        test_cfg=dict(),
        test_evaluator=Evaluator([ToyMetric()]),
        optim_wrapper=dict(optimizer=dict(type='AdamW', lr=0.01)),
        param_scheduler=dict(type='LinearLR', by_epoch=False, end=3),
        default_hooks=dict(
            checkpoint=dict(
                type='CheckpointHook',
                by_epoch=False,
                interval=2,
                save_best='toy/score',
                rule='greater',
            )
        ),
        custom_hooks=[dict(type='EMAHook')],
        randomness=dict(seed=0),
        default_scope='mmengine',
        log_level='ERROR',
        **options,
    )


def test_files_of_mmengine_are_tested_and_resumed(tmp_path):
    work_dir = tmp_path / '\u0442\u0435\u0441\u0442 \xe9'
    stock_runner(work_dir).train()
    path = str(work_dir / 'iter_2.pth')
    with pytest.raises(Exception, match=r'[Ww]eights'):  # what torch itself says
        torch.load(path, weights_only=True)
    score = stock_runner(tmp_path / 'test', load_from=path).test()['toy/score']
    assert np.isfinite(score)
    resumed = stock_runner(tmp_path / 'again', load_from=path, resume=True)
    resumed.train()
    assert resumed.iter == 4
    history = resumed.message_hub.log_scalars['train/loss']
    assert len(history.data[0]) == 4
    latest = stock_runner(work_dir, resume=True)  # by last_checkpoint
    latest.train()
    assert latest.iter == 4


def test_without_our_hooks_a_weight_file_still_says_why_it_cannot_resume(
    tmp_path, save
):
    path = save(ToyModel().state_dict(), 'w.safetensors')
    with pytest.raises(CheckpointError, match=r'cannot resume from .*w\.safetensors'):
        stock_runner(tmp_path, load_from=path, resume=True).train()


def test_prefix_of_mmengine(save):
    path = save(ToyModel().state_dict(), 'w.safetensors')
    state = _load_checkpoint_with_prefix('backbone', path)
    assert 'cls_token' in state and 'head.final_layer.bias' not in state


def test_no_text_of_a_file_is_executed(tmp_path):
    stock_runner(tmp_path / 'a').train()
    checkpoint = torch.load(tmp_path / 'a' / 'iter_2.pth', weights_only=False)
    trap = tmp_path / 'executed'
    code = f"open({str(trap)!r}, 'w').close()\n"
    checkpoint['meta'].update(config=code, cfg=code)
    checkpoint['message_hub']['runtime_info']['cfg'] = code
    path = str(tmp_path / 'hostile.pth')
    torch.save(checkpoint, path)
    resumed = stock_runner(tmp_path / 'b', load_from=path, resume=True)
    resumed.train()
    assert resumed.iter == 4
    assert resumed.message_hub.get_info('cfg') == resumed.cfg.pretty_text
    with pytest.raises(ValueError, match='Cannot find the config in the checkpoint'):
        BaseInferencer._init_model(None, Config(), path)
    assert not trap.exists()
