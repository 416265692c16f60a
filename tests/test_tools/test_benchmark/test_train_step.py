import argparse
import importlib
import sys
from types import SimpleNamespace

import pytest
from toy_run import toy_runner

pytest.importorskip('mmpose')
pytest.importorskip('mmseg')


@pytest.fixture
def script(repo_dir, monkeypatch):
    monkeypatch.syspath_prepend(str(repo_dir / 'tools' / 'benchmark'))
    yield importlib.import_module('train_step')
    for name in ('train_step', 'loader'):
        sys.modules.pop(name, None)


def test_a_part_does_not_contain_those_within_it(script, monkeypatch):
    ticks = [0, 1, 4, 5, 7, 9]
    clocks = iter(ticks), iter([10 * tick for tick in ticks])
    fake = SimpleNamespace(
        process_time=lambda: next(clocks[0]), perf_counter=lambda: next(clocks[1])
    )
    monkeypatch.setattr(script, 'time', fake)
    split = script.Split(warmup=0)
    split.times = dict(outer=[0.0, 0.0], inner=[0.0, 0.0])

    def outer():
        split.time('inner', lambda: None)
        return split.time('unknown', lambda: 'result')

    assert split.time('outer', outer) == 'result'
    outside = 9 - (4 - 1) - (7 - 5)
    assert split.times == dict(outer=[outside, 10 * outside], inner=[3, 30])


def test_all_time_of_a_step_is_in_a_part(script, tmp_path, capsys):
    runner = toy_runner(tmp_path, iterations=4, val_interval=10)
    split = script.Split(warmup=2)
    runner.register_hook(split)
    runner.train()
    assert tuple(split.times) == script.PARTS
    for part in ('data wait', 'forward', 'backward', 'optimizer', 'rest'):
        assert min(split.times[part]) > 0, part
    assert runner.train_loop.run_iter.__name__ == 'run_iter', 'is as it was'
    capsys.readouterr()
    times = {part: [0.001, 0.002] for part in script.PARTS}
    script.print_split('toy', times, 2)
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].split() == ['data', 'wait', '0.5', '1.0']
    assert printed[-1].split()[-2:] == ['57.1%', '57.1%']  # 4 of 7 parts


def test_the_peer_has_backbone_and_data_of_ours(script):
    args = argparse.Namespace(
        data='data', layers=2, batch_size=1, workers=2, warmup=1, steps=1
    )
    for task, kind in (('pose', 'mmpose.HeatmapHead'), ('seg', 'mmseg.FCNHead')):
        ours, peer = script.short_config(task, args), script.peer_config(task, args)
        assert ours.model.backbone == peer.model.backbone
        assert ours.model.backbone.arch.num_layers == 2
        data, peer_data = (cfg.train_dataloader.dataset for cfg in (ours, peer))
        assert (data.type, data.data_root) == (peer_data.type, peer_data.data_root)
        assert data.pipeline != peer_data.pipeline
        head = peer.model.get('head') or peer.model.decode_head
        assert head.type == kind


def test_one_process_measures_one_config_after_the_other(script, monkeypatch):
    cfg = script.Config(dict(visualizer=dict(name='visualizer')))
    made = []

    class Runner:
        register_hook = train = lambda *args: None

        @classmethod
        def from_cfg(cls, cfg):
            made.append((cfg.experiment_name, cfg.visualizer.name, cfg.work_dir))
            return cls()

    monkeypatch.setattr(script, 'Runner', Runner)
    for _ in range(2):
        script.measure(cfg, warmup=0)
    for values in zip(*made, strict=True):
        assert len(set(values)) == 2, 'mmengine would go on with those of the first'
