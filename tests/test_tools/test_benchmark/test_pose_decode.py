import importlib.util

import pytest

pytest.importorskip('mmpose')


def test_prints_every_comparison(repo_dir, capsys):
    path = repo_dir / 'tools/benchmark/pose_decode.py'
    spec = importlib.util.spec_from_file_location('pose_decode_benchmark', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(
        [
            '--batch',
            '1',
            '--keypoints',
            '3',
            '--size',
            '32',
            '24',
            '--repeats',
            '1',
            '--threads',
            '1',
        ]
    )
    printed = capsys.readouterr().out
    for name in (
        'decode peaks',
        'decode noise only',
        'make targets',
        'PCK',
        'targets, loss',
    ):
        assert f'\n{name}' in printed
    assert printed.count('times as fast') == 6
