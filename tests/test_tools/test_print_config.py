import subprocess
import sys


def test_prints_resolved_settings_sorted(repo_dir, tmp_path):
    (tmp_path / 'base.py').write_text(
        "model = dict(type='A', size=(4, 3), empty={})\n"
        'steps = [dict(a=1), dict(b=[2])]\n'
    )
    (tmp_path / 'leaf.py').write_text("_base_ = 'base.py'\nmodel = dict(type='B')\n")
    command = [sys.executable, str(repo_dir / 'tools' / 'print_config.py')]
    options = ['--cfg-options', 'steps.0.a=7']

    def run(*names):
        paths = [str(tmp_path / name) for name in names]
        return subprocess.check_output([*command, *paths, *options], text=True)

    leaf = [
        'model.empty = {}',
        'model.size = (4, 3)',
        "model.type = 'B'",
        'steps.0.a = 7',
        'steps.1.b = [2]',
    ]
    assert run('leaf.py').splitlines() == leaf
    both = run('base.py', 'leaf.py').splitlines()
    assert both[0] == f'# {tmp_path / "base.py"}'
    assert both[3] == "model.type = 'A'"
    assert both[-5:] == leaf
