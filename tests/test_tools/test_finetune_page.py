"""The page on own keypoints: its config and its two commands run as printed."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip('mmpose')
pytest.importorskip('pycocotools')

SHORT = [
    'train_cfg.max_iters=2', 'train_cfg.val_interval=2',
    'train_dataloader.batch_size=2', 'train_dataloader.num_workers=0',
    'train_dataloader.persistent_workers=False', 'val_dataloader.num_workers=0',
    'val_dataloader.persistent_workers=False', 'test_dataloader.num_workers=0',
    'test_dataloader.persistent_workers=False',
    'default_hooks.checkpoint.interval=2',
]  # fmt: skip


@pytest.mark.slow
def test_page_runs(repo_dir, mini_coco, tmp_path):
    page = (repo_dir / 'configs/pose/finetune_own_keypoints.md').read_text()
    config = re.search(r'```python\n(.*?)```', page, re.DOTALL).group(1)
    commands = re.search(r'```bash\n(.*?)```', page, re.DOTALL).group(1)
    data = tmp_path / 'data/my_keypoints'
    data.mkdir(parents=True)
    annotations = mini_coco({}, {}, {}, {}).read_text()
    for name in ('train.json', 'val.json'):
        (data / name).write_text(annotations)
    for image in tmp_path.glob('*.png'):
        image.rename(data / image.name)
    (tmp_path / 'my_pose.py').write_text(config)
    (tmp_path / 'tools').symlink_to(repo_dir / 'tools')
    env = {**os.environ, 'OMP_NUM_THREADS': '1', 'PYTHONPATH': str(repo_dir)}
    for command in commands.strip().splitlines():
        words = re.sub(r'iter_\d+', 'iter_2', command).split()
        assert words[0] == 'python'
        done = subprocess.run(
            [sys.executable, *words[1:], '--cfg-options', *SHORT],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    assert 'coco/AP' in done.stdout + done.stderr
    pictures = list((tmp_path / 'work_dirs/my_pose/pictures').rglob('*.png'))
    assert len(pictures) == 4 and all(p.stat().st_size > 500 for p in pictures)
