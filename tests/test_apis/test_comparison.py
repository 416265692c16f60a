import importlib.util
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from tiny_sapiens_v1 import small_config

from sapiens2_mm.apis import init_model
from sapiens2_mm.apis.comparison import run_trial, side_by_side, table_of

pytest.importorskip('mmseg')


@pytest.fixture(scope='module')
def files(repo_dir, tmp_path_factory):
    """Config and checkpoint of a tiny model of segmentation."""
    (path,) = (repo_dir / 'configs/seg').glob('*tiny*_humans29-*.py')
    checkpoint = tmp_path_factory.mktemp('models') / 'seg.pth'
    torch.save(dict(state_dict=init_model(path).state_dict()), checkpoint)
    return str(path), str(checkpoint)


@pytest.fixture
def options(data_dir):
    return {
        'test_dataloader.dataset.data_root': str(data_dir / 'synthetic_humans'),
        'test_dataloader.batch_size': 1,
        'test_dataloader.num_workers': 0,
    }


@pytest.fixture
def files_v1(repo_dir, tmp_path):
    """Config and checkpoint of a small model of the first Sapiens, 28 classes."""
    pytest.importorskip('mmpretrain')
    cfg = small_config(repo_dir, 'seg')
    cfg.dump(tmp_path / 'v1.py')
    model = init_model(cfg)
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'v1.pth')
    return str(tmp_path / 'v1.py'), str(tmp_path / 'v1.pth')


def test_figures_and_picture_of_both_generations(files, files_v1, options, tmp_path):
    trials = [
        run_trial(*model, files[0], str(tmp_path / f'{i}'), cfg_options=options)
        for i, model in enumerate((files, files_v1))
    ]
    first, second = trials
    assert [*first.metrics] == [*second.metrics] == ['aAcc', 'mIoU', 'mAcc']
    assert all(0 <= value <= 100 for t in trials for value in t.metrics.values())
    assert first.milliseconds > 0 and first.memory >= 0
    assert first.parameters == pytest.approx(3.098813)
    lines = table_of(trials).get_string().splitlines()
    cells = [[cell.strip() for cell in line.split('|')[1:-1]] for line in lines]
    rows = {row[0]: row[1:] for row in cells if row}
    assert rows['mIoU'] == [f'{trial.metrics["mIoU"]:.4g}' for trial in trials]
    assert [title[:3] for title in rows['']] == ['0: ', '1: ']
    assert set(rows) >= {'ms per sample', 'peak memory, MiB', 'parameters, M'}
    # the two validation images: input, then what each model made of it
    picture = np.asarray(side_by_side(trials))
    assert picture.shape[0] == 32 + 2 * 384
    width = first.pictures[0].shape[1]  # 384 rows as they are
    source = np.asarray(Image.open(first.paths[0]).convert('RGB'))
    np.testing.assert_array_equal(picture[32:416, : source.shape[1]], source)
    left = source.shape[1]
    for trial in trials:
        drawn = picture[32:416, left : left + width]
        np.testing.assert_array_equal(drawn, trial.pictures[0])
        left += max(p.shape[1] for p in trial.pictures)
    assert picture.shape[1] == left


@pytest.fixture
def compare(repo_dir, tmp_path, monkeypatch):
    """Runs ``tools/compare.py`` in this process; returns the exit code."""
    path = repo_dir / 'tools' / 'compare.py'
    spec = importlib.util.spec_from_file_location('compare', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.chdir(tmp_path)

    def compare(*arguments):
        monkeypatch.setattr(sys, 'argv', ['compare.py', *map(str, arguments)])
        try:
            return module.main()
        except SystemExit as stop:
            return stop.code

    return compare


def test_tool(compare, files, options, tmp_path, capsys):
    """A model runs in a process of its own; one is enough here."""
    settings = [f'{key}={value}' for key, value in options.items()]
    arguments = ['--data', files[0], '--num-pictures', 1, '--cfg-options', *settings]
    assert compare('--model', *files, *arguments) is None
    table = (tmp_path / 'comparison/table.txt').read_text()
    assert 'mIoU' in table and capsys.readouterr().out.endswith(table)
    with Image.open(tmp_path / 'comparison/comparison.png') as picture:
        assert picture.size[1] == 32 + 384


def test_wrong_arguments_are_one_line(compare, files, repo_dir, capsys):
    data = repo_dir / 'configs/_base_/datasets/public/coco.py'
    for model, data, message in (
        ([files[0]], files[0], 'the name of a published one, or its config and checkp'),
        (['sapiens2-7b_seg'], files[0], 'is neither a config file nor the name'),
        (['a.py', 'b'], files[0], "config 'a.py' does not exist"),
        (files, 'data.py', "config 'data.py' does not exist"),
    ):
        assert compare('--model', *model, '--data', data) == 2
        error = capsys.readouterr().err
        assert message in error and error.count('\n') == 1
