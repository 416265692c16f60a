"""The two benchmarks at 4K, with smaller images."""

import runpy
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

for host in ('mmpose', 'mmseg', 'mmpretrain'):
    pytest.importorskip(host)


@pytest.fixture(scope='module')
def tasks_4k(repo_dir):
    return runpy.run_path(str(repo_dir / 'tools' / 'benchmark' / 'tasks_4k.py'))


@pytest.mark.parametrize(
    'task', ['seg', 'pose', 'normal', 'albedo', 'matting', 'pointmap', 'pretrain_2k']
)
def test_each_config_makes_a_step_of_training(task, tasks_4k):
    """On targets of the size of its output: at 1/4 of the sides, all else shipped."""
    memory, seconds = tasks_4k['measure'](task, 'train', False, (1024, 768))
    assert memory >= 0 and seconds > 0


def test_growth_of_the_backbone(repo_dir, monkeypatch, capsys, tmp_path):
    script = str(repo_dir / 'tools' / 'benchmark' / 'backbone_4k.py')
    main = runpy.run_path(script)['main']
    sizes = {'1K': (128, 64), '2K': (256, 128)}
    monkeypatch.setitem(main.__globals__, 'SIZES', sizes)

    here = nullcontext(SimpleNamespace(apply=lambda function, args: function(*args)))
    context = SimpleNamespace(Pool=lambda number: here)
    monkeypatch.setattr('multiprocessing.get_context', lambda method: context)
    picture = tmp_path / 'growth.png'
    monkeypatch.setattr(sys, 'argv', [script, '--train', '--plot', str(picture)])
    main()
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-4:]]
    assert [row[:3] for row in rows] == [
        ['window', '1K', '32'],
        ['window', '2K', '128'],
        ['global', '1K', '32'],
        ['global', '2K', '128'],
    ]
    assert [len(row) for row in rows] == [7, 8, 7, 8]  # the last is the growth
    assert picture.stat().st_size > 1000
