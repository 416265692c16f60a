import runpy

import pytest

for host in ('mmpose', 'mmseg'):
    pytest.importorskip(host)


def test_prints_speeds_and_steps_of_both_sides(repo_dir, data_dir, capsys):
    script = runpy.run_path(str(repo_dir / 'tools/benchmark/loader.py'))
    data = str(data_dir / 'synthetic_humans')
    script['main']([data, '--tasks', 'pose', 'seg', '--num-images', '1', '--steps'])
    printed = capsys.readouterr().out
    assert printed.count('times as fast') == 2
    assert printed.count('sharing with the training process') == 4
    for name in ('Sapiens2TopdownAffine', 'GenerateTarget', 'SegRandomCrop+Pad'):
        assert f'ms  {name}' in printed
