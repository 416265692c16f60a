import copy
from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch
from mmengine.config import Config
from torch import nn
from toy_run import toy_runner

from sapiens2_mm.engine import launch


def write(path, text='a = 1\n'):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_missing_config_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"config '.*nothing.py' does not"):
        launch.load_config(str(tmp_path / 'nothing.py'))


def test_dotted_names_load_and_do_not_share_a_work_dir(tmp_path):
    write(tmp_path / 'a.b' / 'base_0.4b.py', 'lr = 2\n')
    first = write(tmp_path / 'a.b' / 'x_0.4b.py', "_base_ = 'base_0.4b.py'\n")
    second = write(tmp_path / 'a.b' / 'x_0.8b.py', "_base_ = './base_0.4b.py'\n")
    cfgs = [launch.load_config(path) for path in (first, second)]
    assert [cfg.lr for cfg in cfgs] == [2, 2]
    assert [cfg.work_dir for cfg in cfgs] == ['work_dirs/x_0.4b', 'work_dirs/x_0.8b']


def test_work_dir_order_and_options(tmp_path):
    path = write(tmp_path / 'c.py', "work_dir = 'own'\na = dict(b=1)\n")
    assert launch.load_config(path).work_dir == 'own'
    cfg = launch.load_config(path, {'a.b': 2}, work_dir='given')
    assert (cfg.work_dir, cfg.a.b) == ('given', 2)


@pytest.mark.parametrize('kind', ['OptimWrapper', 'AmpOptimWrapper'])
def test_amp_replaces_the_wrapper(kind):
    cfg = Config(dict(optim_wrapper=dict(type=kind, optimizer=dict(type='SGD'))))
    launch.use_bf16_autocast(cfg)
    assert cfg.optim_wrapper.type == 'sapiens2_mm.AutocastOptimWrapper'
    assert cfg.optim_wrapper.optimizer.type == 'SGD'


def test_amp_refuses_another_wrapper():
    cfg = Config(dict(optim_wrapper=dict(type='ApexOptimWrapper')))
    with pytest.raises(ValueError, match="the config has 'ApexOptimWrapper'"):
        launch.use_bf16_autocast(cfg)


def test_resume_auto_and_path(tmp_path):
    cfg = Config(dict(load_from='weights.pth', work_dir=str(tmp_path)))
    launch.resume(cfg, 'auto')  # nothing saved yet: the start of the run, as it was
    assert (cfg.get('resume'), cfg.load_from) == (None, 'weights.pth')
    write(tmp_path / 'last_checkpoint', 'iter_1.pth')
    launch.resume(cfg, 'auto')
    assert (cfg.resume, cfg.load_from) == (True, None)
    launch.resume(cfg, 'iter_3.pth')
    assert (cfg.resume, cfg.load_from) == (True, 'iter_3.pth')


def test_auto_scale_lr_needs_the_base_batch_size():
    with pytest.raises(ValueError, match='base_batch_size'):
        launch.scale_lr_to_batch(Config(dict()))
    cfg = Config(dict(auto_scale_lr=dict(base_batch_size=48)))
    launch.scale_lr_to_batch(cfg)
    assert cfg.auto_scale_lr.enable


def test_tta_wraps_the_model_and_reaches_a_wrapped_dataset():
    inner = dict(type='D', pipeline=['plain'])
    cfg = Config(
        dict(
            model=dict(type='M'),
            tta_model=dict(type='T'),
            tta_pipeline=['flip'],
            test_dataloader=dict(dataset=dict(type='Repeat', dataset=inner)),
        )
    )
    launch.use_tta(cfg)
    assert cfg.model.type == 'T' and cfg.model.module.type == 'M'
    assert cfg.test_dataloader.dataset.dataset.pipeline == ['flip']
    parts = [dict(type='D', pipeline=['plain']), dict(type='Repeat', dataset=inner)]
    cfg.test_dataloader.dataset = dict(type='Concat', datasets=copy.deepcopy(parts))
    cfg.model = cfg.model.module
    launch.use_tta(cfg)
    first, second = cfg.test_dataloader.dataset.datasets
    assert first.pipeline == second.dataset.pipeline == ['flip']
    own = dict(type='Combined', datasets=parts, pipeline=['plain'])
    cfg.test_dataloader.dataset = own
    cfg.model = cfg.model.module
    launch.use_tta(cfg)
    combined = cfg.test_dataloader.dataset
    assert combined.pipeline == ['flip'] and combined.datasets[0].pipeline == ['plain']
    with pytest.raises(ValueError, match='--tta needs tta_model and tta_pipeline'):
        launch.use_tta(Config(dict()))


def test_dump_keeps_the_other_metrics():
    cfg = Config(dict(test_evaluator=dict(type='A')))
    launch.dump_predictions(cfg, 'out.pkl')
    assert [e.type for e in cfg.test_evaluator] == ['A', 'DumpResults']


def test_loading_is_strict_without_our_runtime(monkeypatch, tmp_path):
    monkeypatch.setattr(launch.Runner, 'from_cfg', lambda cfg: cfg)
    folder = dict(work_dir=str(tmp_path))
    cfg = Config(dict(model=dict(type='M'), **folder))
    hooks = launch.build_runner(cfg).default_hooks
    assert hooks.load.type == 'sapiens2_mm.LoadCheckpointHook'
    assert hooks.non_finite_loss.type == 'sapiens2_mm.NonFiniteLossHook'
    own = dict(default_hooks=dict(load=dict(type='acme.Load')), **folder)
    assert launch.build_runner(Config(own)).default_hooks.load.type == 'acme.Load'


@pytest.mark.parametrize('hooks', [None, dict(visualization=dict(type='mmpose.X'))])
def test_drawing_replaces_the_visualization_of_any_runtime(hooks):
    cfg = Config({} if hooks is None else dict(default_hooks=hooks))
    launch.draw_predictions(cfg, 'show')
    hook = cfg.default_hooks.visualization
    assert hook.type == 'sapiens2_mm.VisualizationHook'
    assert (hook.enable, hook.out_dir) == (True, 'show')


@pytest.mark.parametrize('wrapped', [False, True])
def test_load_from_spares_the_backbone_its_random_weights(
    wrapped, monkeypatch, tmp_path
):
    monkeypatch.setattr(launch.Runner, 'from_cfg', lambda cfg: cfg)

    def init_cfg(**options):
        backbone = {'type': 'sapiens2_mm.Sapiens2', **options.pop('backbone', {})}
        model = dict(type='M', backbone=backbone)
        model = dict(type='T', module=model) if wrapped else model
        cfg = launch.build_runner(
            Config(dict(model=model, work_dir=str(tmp_path), **options))
        )
        return (cfg.model.module if wrapped else cfg.model).backbone.get('init_cfg')

    named = dict(type='Pretrained', checkpoint='a.pth')
    own = dict(type='Pretrained', checkpoint='b.pth')
    assert init_cfg(load_from='a.pth') == named
    assert init_cfg(load_from='a.pth', backbone=dict(init_cfg=own)) == own
    assert init_cfg(load_from='a.pth', backbone=dict(type='acme.Adapted')) is None
    assert init_cfg() is None
    assert init_cfg(load_from='a.pth', resume=True) is None
    hook = dict(type='sapiens2_mm.LoadCheckpointHook', allow_missing=['*.adapter.*'])
    assert init_cfg(load_from='a.pth', default_hooks=dict(load=hook)) is None
    assert init_cfg(load_from='a.pth', default_hooks=dict(load=None)) is None


def test_a_file_for_the_whole_model_spares_random_weights_too(monkeypatch, tmp_path):
    monkeypatch.setattr(launch.Runner, 'from_cfg', lambda cfg: cfg)

    def backbone_file(init_cfg, **options):
        backbone = dict(type='sapiens2_mm.Sapiens2')
        model = dict(type='M', init_cfg=init_cfg, backbone=backbone)
        cfg = launch.build_runner(
            Config(dict(model=model, work_dir=str(tmp_path), **options))
        )
        assert cfg.model.init_cfg == init_cfg
        assert cfg.get('load_from') == options.get('load_from')
        return cfg.model.backbone.get('init_cfg', {}).get('checkpoint')

    whole = dict(type='Pretrained', checkpoint='a.pth')
    assert backbone_file(whole) == 'a.pth'
    assert backbone_file(whole, load_from='b.pth') == 'b.pth'
    assert backbone_file(whole, resume=True) is None
    assert backbone_file(dict(whole, prefix='student.')) is None
    assert backbone_file([whole]) is None
    assert backbone_file(dict(type='Normal', layer='Linear')) is None


def test_a_work_folder_that_cannot_be_written_is_named(tmp_path):
    path = write(tmp_path / 'a.py')
    cfg = launch.load_config(path, work_dir=write(tmp_path / 'file') + '/run')
    message = r'the work folder .*file/run cannot be written: Not a directory; name'
    with pytest.raises(NotADirectoryError, match=message):
        launch.build_runner(cfg)


LAUNCHERS = dict(
    pytorch='RANK is not set.* by torchrun',
    slurm='SLURM_PROCID is not set.* by srun',
    mpi='OMPI_COMM_WORLD_LOCAL_RANK is not set.* by mpirun',
)


@pytest.mark.parametrize('launcher', LAUNCHERS)
def test_a_launcher_that_started_nothing_is_named(launcher, tmp_path, monkeypatch):
    for variable in ('RANK', 'SLURM_PROCID', 'OMPI_COMM_WORLD_LOCAL_RANK'):
        monkeypatch.delenv(variable, raising=False)
    message = f'--launcher {launcher} is for processes that .*{LAUNCHERS[launcher]}'
    with pytest.raises(ValueError, match=message):
        launch.load_config(write(tmp_path / 'c.py'), launcher=launcher)


def test_processes_of_torchrun_belong_together(tmp_path, monkeypatch):
    path = write(tmp_path / 'c.py')
    assert launch.load_config(path).launcher == 'none'
    monkeypatch.setenv('TORCHELASTIC_RUN_ID', 'none')
    monkeypatch.setenv('RANK', '1')
    assert launch.load_config(path).launcher == 'pytorch'


@pytest.fixture
def built(monkeypatch, tmp_path):
    """The config that a runner would be built of."""
    monkeypatch.setattr(launch.Runner, 'from_cfg', lambda cfg: cfg)

    def built(**settings):
        cfg = {'model': dict(type='M'), 'work_dir': str(tmp_path), **settings}
        return launch.build_runner(Config(cfg))

    return built


@pytest.mark.parametrize('sampler', ['InfiniteSampler', 'sapiens2_mm.DrawSampler'])
@pytest.mark.parametrize(
    'loop', [dict(by_epoch=True), dict(type='EpochBasedTrainLoop')]
)
def test_epochs_that_never_end_are_refused(loop, sampler, built):
    infinite = dict(sampler=dict(type=sampler))
    message = f"by epochs, and with {sampler} .*dict\\(type='DefaultSampler', shuffle"
    with pytest.raises(ValueError, match=message):
        built(train_cfg=loop, train_dataloader=infinite)
    built(train_cfg=dict(by_epoch=False), train_dataloader=infinite)
    finite = dict(sampler=dict(type='DefaultSampler'))
    built(train_cfg=loop, train_dataloader=finite)


@pytest.mark.parametrize('name', ['val_dataloader', 'test_dataloader'])
def test_an_evaluation_that_drops_samples_is_refused(name, built):
    with pytest.raises(ValueError, match=rf'{name}\.drop_last spoils the metrics'):
        built(**{name: dict(drop_last=True)})
    built(**{name: dict(drop_last=False), 'train_dataloader': dict(drop_last=True)})


def test_an_epoch_without_iteration_is_refused(tmp_path):
    loop, order = dict(by_epoch=True, max_epochs=1), dict(type='DefaultSampler')
    runner = toy_runner(tmp_path, train_cfg=loop, sampler=order)
    runner._train_dataloader.update(batch_size=16, drop_last=True)
    with pytest.raises(ValueError, match=r'the 8 samples of .* fill no batch of 16;'):
        launch.train(runner)


def test_loaders_without_workers_get_no_settings_for_them(built):
    settings = dict(persistent_workers=True, prefetch_factor=2)
    alone, with_workers = dict(settings, num_workers=0), dict(settings, num_workers=1)
    cfg = built(
        train_dataloader=alone, test_dataloader=alone, val_dataloader=with_workers
    )
    assert cfg.train_dataloader == cfg.test_dataloader == dict(num_workers=0)
    assert cfg.val_dataloader == with_workers


def test_amp_of_a_config_works_without_a_gpu(built, monkeypatch):
    amp = dict(type='AmpOptimWrapper', dtype='float16', loss_scale='dynamic')
    monkeypatch.setattr(launch, 'get_device', lambda: 'cuda')
    assert built(optim_wrapper=amp).optim_wrapper == amp
    monkeypatch.setattr(launch, 'get_device', lambda: 'cpu')
    ours = dict(type='sapiens2_mm.AutocastOptimWrapper', dtype='bfloat16')
    assert built(optim_wrapper=amp).optim_wrapper == ours


def test_compile_of_a_config_compiles_the_backbone(tmp_path, monkeypatch):
    """Not the whole step as mmengine does, which fails on arrays in the samples."""
    graphs, cfgs = [], []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    def from_cfg(cfg):
        cfgs.append(cfg)
        return SimpleNamespace(
            model=nn.Sequential(OrderedDict(backbone=nn.Linear(2, 2)))
        )

    monkeypatch.setattr(launch.Runner, 'from_cfg', from_cfg)
    cfg = dict(work_dir=str(tmp_path), compile=dict(backend=backend))
    model = launch.build_runner(Config(cfg)).model
    names = list(model.state_dict())
    assert 'compile' not in cfgs[0] and not graphs
    model.backbone(torch.ones(1, 2))
    assert len(graphs) == 1 and names == ['backbone.weight', 'backbone.bias']


@pytest.mark.parametrize('scope', ['mmpose', 'mmseg'])
def test_layer_decay_of_a_host_is_not_taken_for_ours(scope, built):
    name = 'LayerDecayOptimWrapperConstructor'
    ours = dict(type='M', backbone=dict(type='sapiens2_mm.Sapiens2'))
    wrapper = dict(constructor=name)
    with pytest.raises(
        ValueError, match=f"looked for in {scope}.*'sapiens2_mm.{name}'"
    ):
        built(default_scope=scope, optim_wrapper=wrapper, model=ours)
    built(default_scope='sapiens2_mm', optim_wrapper=wrapper, model=ours)
    built(default_scope=scope, optim_wrapper=wrapper)  # a model of the host
    wrapper = dict(constructor=f'sapiens2_mm.{name}')
    built(default_scope=scope, optim_wrapper=wrapper, model=ours)
