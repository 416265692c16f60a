import runpy
import sys

import torch
from safetensors.torch import load_file


def test_benchmark_prints_the_ratios(repo_dir, monkeypatch, capsys, tmp_path):
    script = str(repo_dir / 'tools' / 'benchmark' / 'load.py')
    monkeypatch.syspath_prepend(str(repo_dir))
    module = runpy.run_path(script)
    arch = 'sapiens2_0.1b'
    size = module['write_weights'](tmp_path / 'w.safetensors', arch)
    state = load_file(tmp_path / 'w.safetensors')
    assert size > 4 * sum(value.numel() for value in state.values()) > 4e8
    assert all(value.dtype == torch.float32 for value in state.values())
    for way in ('bare', 'ours'):
        result = module['measure'](tmp_path / 'w.safetensors', arch, way)
        assert result['seconds'] > 0

    ways = iter([(2.0, 10), (3.0, 11), (4.0, 6)] * 2)

    def measured(*args):
        seconds, peak = next(ways)
        return dict(seconds=seconds, bytes=peak * 1e8, all_bytes=peak * 1e8)

    main = module['main']
    monkeypatch.setitem(main.__globals__, 'in_new_process', measured)
    monkeypatch.setitem(main.__globals__, 'write_weights', lambda path, arch: 10**9)
    monkeypatch.setitem(main.__globals__, 'forget', lambda path: None)
    monkeypatch.setattr(sys, 'argv', [script, '--repeats', '1'])
    main()
    lines = capsys.readouterr().out.splitlines()
    assert 'cold: time 1.50 x load_file, memory 1.10 x file' in lines
    assert 'warm: time 1.50 x load_file, memory 1.10 x file' in lines
