"""Images per second, share of waiting and MFU in the log."""

import json
from pathlib import Path

import pytest
import torch
from toy_run import toy_runner

from sapiens2_mm.engine import ThroughputHook
from sapiens2_mm.engine.hooks import throughput_hook
from sapiens2_mm.engine.launch import build_runner
from sapiens2_mm.engine.planning.flops import count_train_flops


def scalars(runner):
    path = next(Path(runner.work_dir).rglob('scalars.json'))
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_values_follow_from_the_times_of_the_line(pose_config):
    pytest.importorskip('mmpose')
    pose_config.default_hooks.logger.interval = 1
    pose_config.default_hooks.throughput.peak_tflops = 2.0
    runner = build_runner(pose_config)
    runner.train()
    line = [row for row in scalars(runner) if 'mfu' in row][-1]
    hub = runner.message_hub  # the second iteration alone; the first one warms up
    seconds = hub.get_scalar('train/time').data[0][-1]
    waited = hub.get_scalar('train/data_time').data[0][-1]
    assert line['images/s'] == pytest.approx(2 / seconds)
    assert line['data_share'] == pytest.approx(waited / seconds)
    flops = count_train_flops(pose_config)
    assert line['mfu'] == pytest.approx(2 / seconds * flops / 2e12)


@pytest.mark.parametrize(
    'peak, reason', [(None, 'peak of this device'), (1e12, r'img_size')]
)
def test_without_mfu_it_is_said_once(peak, reason, tmp_path, monkeypatch, lines):
    monkeypatch.setattr(throughput_hook, 'peak_flops', lambda *args: peak)
    logger = dict(logger=dict(type='LoggerHook', interval=1))
    runner = toy_runner(
        tmp_path, hooks=(ThroughputHook(),), iterations=3, extra_hooks=logger
    )
    runner.train()
    assert sum(reason in text for _, text in lines) == 1
    assert runner.message_hub.get_scalar('train/images/s').current() > 0
    assert 'train/mfu' not in runner.message_hub.log_scalars


@pytest.mark.parametrize(
    'inputs, number',
    [
        ([torch.zeros(3, 8, 8)] * 5, 5),
        (torch.zeros(4, 3, 8, 8), 4),
        ([torch.zeros(7, 3, 8, 8)] * 6, 7),
    ],
)
def test_images_of_a_batch(inputs, number):
    assert throughput_hook.num_images(inputs) == number
