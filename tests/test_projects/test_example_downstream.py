"""A downstream team's package keeps working over ours."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip('mmpose')


def test_downstream_config_trains_a_step(repo_dir, data_dir, tmp_path):
    project = repo_dir / 'projects' / 'example_downstream'
    data = f'data_root={data_dir / "synthetic_humans"}'
    options = [
        *(f'{split}_dataloader.dataset.{data}' for split in ('train', 'val', 'test')),
        *(f'{split}_dataloader.num_workers=0' for split in ('train', 'val', 'test')),
        *(
            f'{split}_dataloader.persistent_workers=False'
            for split in ('train', 'val', 'test')
        ),
        'train_dataloader.batch_size=2',
        'train_cfg.max_iters=1',
        'train_cfg.val_interval=1',
        'default_hooks.logger.interval=1',
    ]
    result = subprocess.run(
        [
            *(sys.executable, str(repo_dir / 'tools' / 'train.py')),
            str(project / 'configs' / 'acme_pose.py'),
            *('--work-dir', str(tmp_path), '--cfg-options', *options),
        ],
        cwd=tmp_path,  # not the repository: nothing may depend on the folder
        env={**os.environ, 'PYTHONPATH': f'{project}{os.pathsep}{repo_dir}'},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    scalars = next(tmp_path.glob('*/vis_data/scalars.json')).read_text()
    records = [json.loads(line) for line in scalars.splitlines()]
    assert records[0]['loss_kpt'] > 0
    assert 'coco/AP' in records[-1]
