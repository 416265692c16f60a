"""The page on own classes: its config and its commands run as printed."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

pytest.importorskip('mmseg')

SHORT = [
    'train_cfg.max_iters=2', 'train_cfg.val_interval=2',
    'train_dataloader.batch_size=2', 'train_dataloader.num_workers=0',
    'train_dataloader.persistent_workers=False', 'val_dataloader.num_workers=0',
    'val_dataloader.persistent_workers=False', 'test_dataloader.num_workers=0',
    'test_dataloader.persistent_workers=False',
    'default_hooks.checkpoint.interval=2',
]  # fmt: skip


@pytest.mark.slow
def test_page_runs(repo_dir, tmp_path):
    page = (repo_dir / 'configs/seg/finetune_own_classes.md').read_text()
    config = re.search(r'```python\n(.*?)```', page, re.DOTALL).group(1)
    commands = re.search(r'```bash\n(.*?)```', page, re.DOTALL).group(1)
    data = tmp_path / 'data/my_parts'
    rng = np.random.default_rng(0)
    for folder in ('rgb', 'seg'):
        (data / folder).mkdir(parents=True)
    for index in range(4):
        labels = rng.choice(np.array([0, 1, 2, 3, 255], np.uint8), (40, 30))
        Image.fromarray(labels).save(data / f'seg/{index}.png')
        noise = rng.integers(0, 256, (40, 30, 3), np.uint8)
        Image.fromarray(noise).save(data / f'rgb/{index}.jpg')
    (data / 'train.txt').write_text('0\n1\n')
    (data / 'val.txt').write_text('2\n3\n')
    (tmp_path / 'my_seg.py').write_text(config)
    (tmp_path / 'tools').symlink_to(repo_dir / 'tools')
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': str(repo_dir)}
    for command in commands.strip().splitlines():
        words = command.replace('iter_600', 'iter_2').split()
        assert words[0] == 'python'
        done = subprocess.run(
            [sys.executable, *words[1:], '--cfg-options', *SHORT],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r'\| +left_sleeve +\|', done.stdout + done.stderr)
    pictures = list((tmp_path / 'work_dirs/my_seg/pictures').rglob('*.png'))
    assert len(pictures) == 2 and all(p.stat().st_size > 500 for p in pictures)
