import subprocess
import sys

import pytest


@pytest.mark.slow
def test_prints_both_speeds(repo_dir):
    pytest.importorskip('mmseg')
    script = repo_dir / 'tools' / 'benchmark' / 'inference.py'
    options = ['--pictures', '2', '--repeats', '1']
    done = subprocess.run(
        [sys.executable, script, *options],
        cwd=repo_dir,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[-3:]] == ['plain', 'ours', 'ours']
    assert lines[-1].startswith('ours / plain: ')
