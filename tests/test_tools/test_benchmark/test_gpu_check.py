"""The GPU check, tiny and on the CPU."""

import re
import runpy

import pytest
import torch

pytest.importorskip('mmpose')
pytest.importorskip('mmpretrain')


@pytest.fixture(scope='module')
def check(repo_dir):
    return runpy.run_path(str(repo_dir / 'tools/benchmark/gpu_check.py'))


def test_the_parts_take_six_minutes_at_most(check, repo_dir):
    text = (repo_dir / 'tools/benchmark/gpu_check.sh').read_text()
    limits = {k: int(v) for k, v in re.findall(r'\[(\w+)\]=(\d+)', text)}
    assert limits.keys() == check['PARTS'].keys()
    assert re.search(r'for part in ([\w ]+); do', text)[1].split() == list(limits)
    assert sum(limits.values()) <= 360


@pytest.mark.parametrize('error', [0.0, 0.5])
def test_a_wrong_number_is_found(check, error, monkeypatch):
    feats = torch.ones(1, 4)
    case = torch.nn.Identity(), {}, feats, feats * (1 + error)
    function = check['fixtures']
    monkeypatch.setitem(
        function.__globals__, 'reference_cases', lambda: dict(ours=case)
    )
    if not error:
        function(torch.device('cpu'), True)
        return
    with pytest.raises(SystemExit, match='further from the fixtures'):
        function(torch.device('cpu'), True)


def test_decoding_runs_dry(check, capsys):
    check['decoding'](torch.device('cpu'), True)
    assert 'ms per person' in capsys.readouterr().out
