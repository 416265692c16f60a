"""The public data: what their configs read, and models tested on them."""

import math
import runpy
import sys

import pytest
from mmengine.config import Config
from mmengine.registry import init_default_scope
from public_layouts import PAGES, write_layout
from tiny_sapiens_v1 import small_config

from sapiens2_mm.datasets.checking.checker import check_config
from sapiens2_mm.engine import launch
from sapiens2_mm.engine.test_data import use_data
from sapiens2_mm.registry import DATASETS

pytest.importorskip('mmpose')
pytest.importorskip('mmseg')


@pytest.fixture
def data_config(repo_dir, tmp_path):
    """A config of public data, with its layout below ``tmp_path`` or without."""

    def read(name, written=True):
        path = repo_dir / f'configs/_base_/datasets/public/{name}.py'
        cfg = Config.fromfile(path)
        cfg.test_dataloader.update(num_workers=0, persistent_workers=False)
        cfg.test_dataloader.dataset.data_root = str(tmp_path / name)
        if written:
            write_layout(name, tmp_path / name)
        return cfg

    return read


def test_every_config_is_tried(repo_dir):
    folder = repo_dir / 'configs/_base_/datasets/public'
    assert {path.stem for path in folder.glob('*.py')} == {*PAGES, 'test_loader'}
    page = (folder / 'README.md').read_text()
    assert [name for name in PAGES if f'`{name}.py`' not in page] == []


@pytest.mark.parametrize('name', PAGES)
def test_layout_is_read_without_faults(name, data_config):
    report = check_config(data_config(name), 'test')
    assert report.num_samples == 2 and not report.has_errors
    assert [f for f in report.findings if f.kind != 'doubtful annotations'] == []


@pytest.mark.parametrize('name', PAGES)
def test_missing_data_are_one_error_that_says_where_to_get_them(name, data_config):
    cfg = data_config(name, written=False)
    init_default_scope(cfg.default_scope)
    with pytest.raises(FileNotFoundError) as caught:
        DATASETS.build(cfg.test_dataloader.dataset)
    message = str(caught.value)
    assert PAGES[name] in message and 'there must be' in message
    assert cfg.test_dataloader.dataset.data_root in message


def test_tool_says_in_a_line_where_the_data_are(repo_dir, monkeypatch, capsys):
    tool = runpy.run_path(str(repo_dir / 'tools/check_dataset.py'))
    config = repo_dir / 'configs/_base_/datasets/public/ppm100.py'
    options = ['--cfg-options', 'test_dataloader.dataset.data_root=none']
    monkeypatch.setattr(sys, 'argv', ['check_dataset.py', str(config), *options])
    with pytest.raises(SystemExit) as stop:
        tool['main']()
    error = capsys.readouterr().err
    assert stop.value.code == 2 and error.count('\n') == 1
    assert (
        "error: no file in 'none/image' ends in" in error and PAGES['ppm100'] in error
    )


def test_missing_detections_can_be_done_without(data_config, tmp_path):
    cfg = data_config('coco')
    init_default_scope('mmpose')
    (file,) = (tmp_path / 'coco/person_detection_results').iterdir()
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r'70_person\.json does not exist\. C'):
        DATASETS.build(cfg.test_dataloader.dataset)
    cfg.test_dataloader.dataset.bbox_file = None
    assert len(DATASETS.build(cfg.test_dataloader.dataset)) == 2


@pytest.mark.parametrize('name, torso', [('cihp', 'Torso'), ('lip', 'ignored')])
def test_labels_by_name(name, torso, data_config):
    """For a model without eyeglasses those are ignored."""
    cfg = data_config(name)
    init_default_scope('mmseg')
    dataset = cfg.test_dataloader.dataset
    classes = DATASETS.get('sapiens2_mm.Humans29Dataset').METAINFO['classes']
    label_of = {}
    for names in (classes, [n for n in classes if n != 'Eyeglass']):
        sample = DATASETS.build({**dataset, 'metainfo': dict(classes=names)})[0]
        labels = sample['data_samples'].gt_sem_seg.data[0, :40].flatten()[::2]
        label_of[len(names)] = [
            'ignored' if label == 255 else names[label] for label in labels[:20]
        ]
    expected = [
        *('Background', 'Apparel', 'Hair', 'Apparel', 'Eyeglass', 'Upper_Clothing'),
        *('ignored', 'Upper_Clothing', 'Left_Sock', 'Lower_Clothing', torso),
        *('Apparel', 'Lower_Clothing', 'Face_Neck', 'Left_Lower_Arm'),
        *('Right_Lower_Arm', 'Left_Lower_Leg', 'Right_Lower_Leg', 'Left_Shoe'),
        'Right_Shoe',
    ]
    assert label_of[29] == expected
    expected[4] = 'ignored'
    assert label_of[28] == expected


def model_config(repo_dir, tmp_path, task):
    """A small config of a task of Sapiens2, or of the first Sapiens ('v1 TASK')."""
    if task.startswith('v1 '):
        pytest.importorskip('mmpretrain')
        cfg = small_config(repo_dir, task.removeprefix('v1 '))
        cfg.launcher = 'none'
    else:
        (path,) = (repo_dir / 'configs' / task).glob('sapiens2-tiny_*_synthetic-*.py')
        cfg = launch.load_config(str(path))
    cfg.work_dir = str(tmp_path / 'work')
    cfg.experiment_name = f'{task}-{tmp_path.name}'
    return cfg


@pytest.mark.parametrize(
    'task, name, metric',
    [
        ('pose', 'coco_wholebody', 'coco-wholebody/AP'),
        ('seg', 'cihp', 'mIoU'),
        ('normal', 'hi4d_normal', 'normal/normal_mae'),
        ('matting', 'p3m10k', 'matting/alpha_mae'),
        ('v1 pose', 'coco', 'coco/AP'),
        ('v1 pose-coco-wholebody', 'coco_wholebody', 'coco-wholebody/AP'),
        ('v1 seg', 'lip', 'mIoU'),
        ('v1 depth', 'thuman2_depth', 'depth/abs_rel'),
    ],
)
def test_models_are_tested_on_public_data(
    task, name, metric, data_config, repo_dir, tmp_path
):
    cfg = model_config(repo_dir, tmp_path, task)
    own = [step['type'] for step in cfg.test_dataloader.dataset.pipeline]
    use_data(cfg, data_config(name))
    metrics = launch.build_runner(cfg).test()
    assert math.isfinite(metrics[metric])
    # as the model sees pictures, whatever the pipeline of the data
    steps = cfg.test_dataloader.dataset.pipeline
    assert len(steps) == len(own)
    (size,) = {
        tuple(step.get('size') or (step.get('input_size') or step.scale)[::-1])
        for step in steps
        if {'size', 'input_size', 'scale'} & step.keys()
    }
    assert size == tuple(cfg.model.backbone.img_size) != (1024, 768)


def test_data_of_another_task_are_refused(data_config, repo_dir, tmp_path, table5):
    for task, name, words in (
        ('seg', 'coco', r'tiny.*\.py tests Seg, and .*coco\.py has Pose; choose'),
        ('depth', 'hi4d_normal', 'tests depth, and .* has normal'),
        ('pointmap', 'hi4d_depth', 'tests depth camera, and .* has depth'),
        ('normal', 'p3m10k', 'tests normal, and .* has alpha'),
    ):
        cfg = model_config(repo_dir, tmp_path, task)
        with pytest.raises(ValueError, match=words):
            use_data(cfg, data_config(name))
    data = Config.fromfile(repo_dir / 'configs/_base_/datasets/humans308_1024x768.py')
    data.test_dataloader.dataset.metainfo = table5
    with pytest.raises(ValueError, match=r'keypoints humans308, and .* has table5; ch'):
        use_data(model_config(repo_dir, tmp_path, 'pose'), data)
    (path,) = (repo_dir / 'configs/backbone').glob('*0.4b*.py')
    with pytest.raises(ValueError, match=r'config of the model, .* needs test_datalo'):
        use_data(Config.fromfile(path), data_config('cihp'))
