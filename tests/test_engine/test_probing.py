import importlib.util
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from sapiens2_mm.engine import probing
from sapiens2_mm.registry import MODELS

FOLDER = Path(__file__).parents[2] / 'configs' / 'probe'


def test_table():
    rows = {
        'teacher': {'seg mIoU': 12.3456, 'pose AP': 0.5},
        'student': {'seg mIoU': 9.0},
    }
    assert probing.format_table(rows).splitlines() == [
        '| encoder | pose AP | seg mIoU |',
        '| --- | --- | --- |',
        '| teacher | 0.5 | 12.35 |',
        '| student | - | 9 |',
    ]


def test_best_row_has_the_best_mean_rank():
    rows = {
        'a': {'pose AP': 0.1, 'seg mIoU': 50.0, 'normal deg': 30.0},
        'b': {'pose AP': 0.2, 'seg mIoU': 40.0, 'normal deg': 20.0},
        'c': {'pose AP': 0.3, 'seg mIoU': 30.0, 'normal deg': 25.0},
    }  # ranks 2 0 2, 1 1 0, 0 2 1
    assert probing.best_row(rows) == 'b'
    assert probing.format_table(rows, 'b').splitlines()[3].startswith('| b (best) |')


def test_checkpoints_of_a_run_are_in_order(tmp_path):
    for name in ('iter_900', 'iter_1000', 'best_seg_mIoU_iter_900', 'epoch_2', 'x'):
        (tmp_path / f'{name}.pth').touch()
    found = [path.stem for path in probing.checkpoints_of(tmp_path)]
    assert found == ['epoch_2', 'iter_900', 'iter_1000']
    with pytest.raises(FileNotFoundError, match='holds no iter_'):
        probing.checkpoints_of(tmp_path / 'other')


def test_all_checkpoints_make_a_row_each(monkeypatch, repo_dir, tmp_path, capsys):
    path = repo_dir / 'tools' / 'probe.py'
    spec = importlib.util.spec_from_file_location('probe_tool', path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    (tmp_path / 'run').mkdir()
    for number in (8, 12):
        weights = tiny_weights(tmp_path)
        weights['neck.mask_token'] = torch.zeros(1)
        weights['teacher.backbone.cls_token'] += number
        torch.save(dict(state_dict=weights), tmp_path / 'run' / f'iter_{number}.pth')

    def run_probe(cfg, task):
        encoder = load_file(cfg.model.backbone.init_cfg.checkpoint)
        return {'seg mIoU': float(encoder['cls_token'].mean().round())}

    monkeypatch.setattr(probing, 'run_probe', run_probe)
    options = ['--all', '--model', 'tiny', '--tasks', 'seg']
    command = ['probe.py', str(tmp_path / 'run'), *options]
    monkeypatch.setattr('sys.argv', [*command, '--work-dir', str(tmp_path / 'out')])
    tool.main()
    rows = capsys.readouterr().out.splitlines()
    assert rows[-2:] == ['| iter_8 | 8 |', '| iter_12 (best) | 12 |']


@pytest.mark.parametrize('model', ['0.4b', 'tiny'])
def test_every_task_has_a_config(model):
    found = probing.find_configs(FOLDER, model, probing.TASKS)
    assert list(found) == ['pose', 'seg', 'normal', 'pointmap', 'albedo']


def test_unknown_model():
    with pytest.raises(FileNotFoundError, match='sapiens2-7b_probe-pose'):
        probing.find_configs(FOLDER, '7b', ['pose'])


def test_arch_sets_everything_that_depends_on_it():
    path = probing.find_configs(FOLDER, '0.4b', ['normal'])['normal']
    cfg = probing.probe_config(
        path, 'x.safetensors', Path('w'), 'sapiens2_1b', 'root', {'train_cfg': {}}
    )
    assert cfg.model.backbone.frozen_stages == 40
    assert cfg.model.neck.in_channels == 1536
    assert cfg.model.backbone.init_cfg.checkpoint == 'x.safetensors'
    assert cfg.val_dataloader.dataset.data_root == 'root'
    assert cfg.work_dir == 'w'


def tiny_weights(tmp_path: Path) -> dict[str, torch.Tensor]:
    path = probing.find_configs(FOLDER, 'tiny', ['normal'])['normal']
    torch.manual_seed(0)
    backbone = MODELS.build(probing.probe_config(path, None, tmp_path).model.backbone)
    backbone.init_weights()
    return {f'{prefix}{key}': value.clone()
            for prefix in ('backbone.', 'teacher.backbone.')
            for key, value in backbone.state_dict().items()}  # fmt: skip


def test_a_pretraining_checkpoint_has_two_encoders(tmp_path):
    pytest.importorskip('mmpretrain')
    weights = tiny_weights(tmp_path)
    weights['neck.mask_token'] = torch.zeros(1)
    weights['teacher.backbone.cls_token'] += 1
    torch.save(dict(state_dict=weights), tmp_path / 'iter.pth')
    found = probing.encoders_of(str(tmp_path / 'iter.pth'), tmp_path / 'out')
    assert list(found) == ['teacher', 'student']
    for name, prefix in (('teacher', 'teacher.backbone.'), ('student', 'backbone.')):
        stored = load_file(found[name])['cls_token']
        assert torch.equal(stored, weights[f'{prefix}cls_token'])


def test_other_checkpoints_are_one_row(tmp_path):
    torch.save(dict(cls_token=torch.zeros(1)), tmp_path / 'sapiens2_1b_pretrain.pth')
    path = str(tmp_path / 'sapiens2_1b_pretrain.pth')
    assert probing.encoders_of(path, tmp_path) == {'sapiens2_1b_pretrain': path}
    assert probing.encoders_of('random', tmp_path) == {'random': None}


@pytest.fixture
def albedo_config(tmp_path, data_dir):
    path = probing.find_configs(FOLDER, 'tiny', ['albedo'])['albedo']
    return probing.probe_config(
        path,
        None,
        tmp_path / 'run',
        data_root=str(data_dir / 'synthetic_humans'),
        cfg_options={
            'train_cfg.max_iters': 2,
            'train_dataloader.batch_size': 2,
            'train_dataloader.num_workers': 0,
            'train_dataloader.persistent_workers': False,
            'val_dataloader.num_workers': 0,
            'val_dataloader.persistent_workers': False,
        },
    )


@pytest.mark.slow
def test_a_probe_trains_the_decoder_alone(albedo_config, tmp_path):
    metrics = probing.run_probe(albedo_config, 'albedo')
    assert list(metrics) == ['albedo MAE x100']
    assert 0 < metrics['albedo MAE x100'] < 100
    (path,) = (tmp_path / 'run').glob('iter_2.pth')
    state = torch.load(path, weights_only=False)
    trained = sum(len(group['params']) for group in state['optimizer']['param_groups'])
    assert trained == 2 * 3  # weight and bias of two convolutions and the predictor


def test_an_encoder_that_is_not_frozen_is_refused(albedo_config):
    albedo_config.model.backbone.frozen_stages = 2
    with pytest.raises(ValueError, match='set frozen_stages to its number of'):
        probing.run_probe(albedo_config, 'albedo')
