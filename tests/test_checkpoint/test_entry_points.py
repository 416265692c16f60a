"""Every form of file through every way a user names it, with the tiny normal config.

``pytest -s tests/test_checkpoint/test_entry_points.py`` prints the table.
"""

import json
import os

import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger
from safetensors.torch import save_file

from sapiens2_mm.apis import init_model
from sapiens2_mm.checkpoint import CheckpointError, read_checkpoint
from sapiens2_mm.checkpoint.layouts.convert import convert_checkpoint
from sapiens2_mm.engine import launch

FOLDER = '\u0442\u0435\u0441\u0442 \xe9'
OK, NEW_HEAD = 'loads', 'loads, new head'
REFUSED = 'refused: '
NO_STATE = f'{REFUSED}holds weights only'
OTHER_MODEL = f'{REFUSED}the model has changed since'
NO_HEAD = f'{REFUSED}missing in the checkpoint'
TOKENIZER = f'{REFUSED}4K checkpoint'
UNSAFE = f'{REFUSED}was not loaded'
OTHER = f'{REFUSED}does not fit the model; of another shape'
# form: init_cfg, load_from, test.py, --resume, init_model
TABLE = {
    'backbone.safetensors': (OK, NEW_HEAD, NO_HEAD, NO_STATE, NO_HEAD),
    'backbone.pth': (OK, NEW_HEAD, NO_HEAD, NO_STATE, NO_HEAD),
    'backbone. prefix': (OK, NEW_HEAD, NO_HEAD, NO_STATE, NO_HEAD),
    'module.backbone. prefix': (OK, NEW_HEAD, NO_HEAD, NO_STATE, NO_HEAD),
    'in state_dict': (OK, NEW_HEAD, NO_HEAD, NO_STATE, NO_HEAD),
    'in model': (OK, NEW_HEAD, NO_HEAD, NO_STATE, NO_HEAD),
    'pretraining run': (OK, NEW_HEAD, NO_HEAD, OTHER_MODEL, NO_HEAD),
    'official task file': (OK, OK, OK, NO_STATE, OK),
    'sharded': (OK, OK, OK, NO_STATE, OK),
    'transformers': (OK, OK, OK, NO_STATE, OK),
    'own run': (OK, OK, OK, OK, OK),
    'best of own run': (OK, OK, OK, NO_STATE, OK),
    '4K backbone': (TOKENIZER, TOKENIZER, TOKENIZER, NO_STATE, TOKENIZER),
    'pointmap file': (OK, OTHER, NO_HEAD, NO_STATE, NO_HEAD),
    'os.system pickle': (UNSAFE, UNSAFE, UNSAFE, UNSAFE, UNSAFE),
}


@pytest.fixture(scope='module')
def make_config(repo_dir, data_dir):
    (path,) = (repo_dir / 'configs' / 'normal').glob('sapiens2-tiny_*.py')

    def make(work_dir, iterations=1, **options) -> Config:
        make.count += 1
        cfg = launch.load_config(str(path), work_dir=str(work_dir))
        cfg.model.backbone.arch = dict(
            embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64
        )
        cfg.model.decode_head.update(
            in_channels=32, upsample_channels=(8, 8, 8, 8), conv_out_channels=(8,)
        )
        for loader in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
            cfg[loader].update(batch_size=2, num_workers=0, persistent_workers=False)
            cfg[loader].dataset.data_root = str(data_dir / 'synthetic_humans')
        cfg.train_cfg.update(max_iters=iterations, val_interval=10)
        cfg.default_hooks.checkpoint.interval = 1
        cfg.experiment_name = cfg.visualizer.name = f'entry{make.count}{os.getpid()}'
        cfg.log_level = 'ERROR'
        cfg.custom_hooks = [dict(type='EMAHook')]
        for key, value in options.items():
            cfg[key] = value
        return cfg

    make.count = 0
    return make


class System:
    def __reduce__(self):
        return os.system, ('touch HOSTILE_CODE_RAN',)


@pytest.fixture(scope='module')
def files(make_config, tmp_path_factory):
    """form -> path; all of one run, whose folder has an awkward name."""
    folder = tmp_path_factory.mktemp('entry') / FOLDER
    cfg = make_config(folder / 'run', 2)
    cfg.train_cfg.val_interval = 2  # saves the best
    launch.build_runner(cfg).train()
    run = folder / 'run' / 'iter_2.pth'
    whole = read_checkpoint(run)
    state = dict(whole['state_dict'])
    start = 'backbone.'
    bare = {k[len(start) :]: v for k, v in state.items() if k.startswith(start)}

    def save(content, name):
        path = folder / name
        if path.suffix == '.safetensors':
            save_file(content, path)
        else:
            torch.save(content, path)
        return path

    def prefixed(prefix):
        return {prefix + key: value for key, value in bare.items()}

    (folder / 'shards').mkdir()
    shards = {}
    for number in (0, 1):
        part = dict(sorted(state.items())[number::2])
        save(part, f'shards/{number}.safetensors')
        shards.update(dict.fromkeys(part, f'{number}.safetensors'))
    index = folder / 'shards' / 'model.safetensors.index.json'
    index.write_text(json.dumps({'weight_map': shards}))
    convert_checkpoint(run, folder / 'hf', 'transformers', task='normal')
    tokenizer = {'tokenizer.w_cls': torch.zeros(1, 1, 32)}
    pretraining = prefixed('backbone.') | prefixed('teacher.backbone.')
    pretraining |= {'neck.mask_token': torch.zeros(1), 'iteration': torch.tensor(3)}
    pointmap = {
        key.replace('conv_normal', 'conv_pointmap'): value
        for key, value in state.items()
    }
    first = 'decode_head.input_conv.0.weight'
    pointmap[first] = torch.zeros(32, 32, 5, 5)
    self_supervised = {**whole, 'state_dict': pretraining}
    del self_supervised['ema_state_dict']  # of the task's run
    return {
        'backbone.safetensors': save(bare, 'b.safetensors'),
        'backbone.pth': save(bare, 'b.pth'),
        'backbone. prefix': save(prefixed('backbone.'), 'p.pth'),
        'module.backbone. prefix': save(prefixed('module.backbone.'), 'm.pth'),
        'in state_dict': save({'state_dict': bare}, 's.pth'),
        'in model': save({'model': bare}, 'w.pth'),
        'pretraining run': save(self_supervised, 'pre.pth'),
        'official task file': save(state, 'sapiens2_tiny_normal.safetensors'),
        'sharded': index,
        'transformers': folder / 'hf',
        'own run': folder / 'run' / 'iter_1.pth',
        'best of own run': next((folder / 'run').glob('best_*.pth')),
        '4K backbone': save({**bare, **tokenizer}, '4k.safetensors'),
        'pointmap file': save(pointmap, 'sapiens2_tiny_pointmap.safetensors'),
        'os.system pickle': save({'state_dict': state, 'x': System()}, 'bad.pth'),
    }


def by_init_cfg(make_config, folder, path):
    cfg = make_config(folder / 'init_cfg')
    cfg.model.backbone.init_cfg = dict(type='Pretrained', checkpoint=path)
    launch.build_runner(cfg).train()


def by_load_from(make_config, folder, path):
    launch.build_runner(make_config(folder / 'load', load_from=path)).train()


def by_test(make_config, folder, path):
    launch.build_runner(make_config(folder / 'test', load_from=path)).test()


def by_resume(make_config, folder, path):
    cfg = make_config(folder / 'resume', 2)
    launch.resume(cfg, path)
    runner = launch.build_runner(cfg)
    runner.train()
    assert runner.iter == 2


def by_init_model(make_config, folder, path):
    cfg = make_config(folder / 'init')
    init_model(cfg, path)


WAYS = (by_init_cfg, by_load_from, by_test, by_resume, by_init_model)


def outcome(way, make_config, folder, path) -> str:
    """``OK``, ``NEW_HEAD``, or the message of the error."""
    logged = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            MMLogger, 'log', lambda self, level, text, *_: logged.append(text)
        )
        try:
            way(make_config, folder, str(path))
        except CheckpointError as err:
            return f'refused: {err}'
    return NEW_HEAD if any('start untrained' in text for text in logged) else OK


@pytest.mark.slow
@pytest.mark.parametrize('form', TABLE)
def test_form_at_every_entry_point(form, make_config, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # asks compilers for their versions, at every start of a run
    monkeypatch.setattr('mmengine.runner.runner.collect_env', dict)
    for way, expected in zip(WAYS, TABLE[form], strict=True):
        found = outcome(way, make_config, tmp_path, files[form])
        if expected.startswith(REFUSED):
            assert found.startswith(REFUSED), (way, found)
            assert expected.removeprefix(REFUSED) in found, way
        else:
            assert found == expected, way
    print(f'| {form} | ' + ' | '.join(TABLE[form]) + ' |')
    assert not (tmp_path / 'HOSTILE_CODE_RAN').exists()
