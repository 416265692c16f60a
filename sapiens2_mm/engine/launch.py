"""From command line options to a ready runner; what tools/ only parses."""

import logging
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch
from mmengine.config import Config, ConfigDict
from mmengine.device import get_device
from mmengine.logging import print_log
from mmengine.registry import RUNNERS
from mmengine.runner import EpochBasedTrainLoop, Runner

from .hooks.load_checkpoint_hook import unwrapped, whole_model_file
from .hooks.metainfo_check_hook import check_config_metainfo
from .launchers import check_started, distribute_on_cpu
from .parallelize import compile_blocks, recompute
from .work_dir import latest_checkpoint


def load_config(
    path: str,
    cfg_options: dict[str, Any] | None = None,
    work_dir: str | None = None,
    launcher: str = 'none',
) -> Config:
    """Read a config for a run.

    The work folder is ``work_dir``, else the config's own, else
    ``work_dirs/<config name>``.

    Processes that torchrun has started belong together without ``launcher`` too.

    Raises:
        FileNotFoundError: if ``path`` does not exist.
        ValueError: if the processes were not started by what ``launcher`` needs.
    """
    if launcher == 'none' and torch.distributed.is_torchelastic_launched():
        launcher = 'pytorch'
    check_started(launcher)
    if not Path(path).is_file():
        raise FileNotFoundError(f'config {path!r} does not exist; see configs/')
    cfg = Config.fromfile(path)
    if cfg_options:
        cfg.merge_from_dict(cfg_options)
    cfg.launcher = launcher
    if work_dir is not None:
        cfg.work_dir = work_dir
    elif cfg.get('work_dir') is None:
        cfg.work_dir = str(Path('work_dirs') / Path(path).stem)
    return cfg


def build_runner(cfg: Config) -> Runner:
    """The runner of a config, of mmengine's or of a registered ``runner_type``.

    A config that does not inherit our runtime gets the hooks that load checkpoints
    strictly and stop at losses that are not finite all the same.

    The processes of a launcher work without a GPU too, and talk by gloo.
    Without a GPU an ``AmpOptimWrapper`` becomes bfloat16 autocast. A loader without
    worker processes needs no other setting to be changed.

    ``recompute = 'full'`` or ``'selective'`` saves memory of activations, see
    ``parallelize.recompute``. ``compile = True``, or a dict of options of
    ``torch.compile``, compiles the transformer blocks; mmengine compiles the whole step
    of a training, with the data of samples, and fails on that of mmpose. ``strategy``,
    such as ``dict(type='sapiens2_mm.FSDP2Strategy')``, is for a ``StrategyRunner``.

    Raises:
        ValueError: if an epoch would never end, layer decay would have no effect, or
            an evaluation would drop samples.
        ValueError: if the config's keypoint metainfo and head differ in number.
        OSError: if the work folder cannot be written.
    """
    _make_work_dir(cfg)
    hooks = cfg.get('default_hooks') or {}
    own = dict(
        load=dict(type='sapiens2_mm.LoadCheckpointHook'),
        non_finite_loss=dict(type='sapiens2_mm.NonFiniteLossHook'),
    )
    cfg.default_hooks = {**own, **hooks}
    _check_epochs(cfg)
    _set_up_loaders(cfg)
    wrapper = cfg.get('optim_wrapper') or {}
    _check_constructor(cfg, wrapper)
    if wrapper.get('type') == 'AmpOptimWrapper' and get_device() in ('cpu', 'mps'):
        use_bf16_autocast(cfg)
    _name_file_of_backbone(cfg)
    if cfg.get('launcher', 'none') != 'none' and not torch.cuda.is_available():
        distribute_on_cpu(cfg)
    if 'strategy' in cfg:
        cfg.setdefault('runner_type', 'sapiens2_mm.StrategyRunner')
    compiling = cfg.pop('compile', None)
    runner = RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)
    if 'recompute' in cfg:
        recompute(unwrapped(runner.model), cfg.recompute)
    if compiling:
        options = {} if compiling is True else compiling
        compile_blocks(unwrapped(runner.model), **options)
    check_config_metainfo(runner, cfg)
    return runner


def train(runner: Runner) -> None:
    """Train; a loader worker that was killed is one error, wherever it shows first.

    Raises:
        RuntimeError: if a worker of a loader died, of lack of memory as a rule.
        ValueError: if an epoch has no iteration.
    """
    loop = runner.train_loop
    if isinstance(loop, EpochBasedTrainLoop) and not len(loop.dataloader):
        raise ValueError(
            f'the {len(loop.dataloader.dataset)} samples of train_dataloader fill no '
            f'batch of {loop.dataloader.batch_size}; set drop_last=False'
        )
    try:
        runner.train()
    except (ConnectionError, EOFError) as err:  # of the pipe to the worker
        raise RuntimeError(
            'a loader worker was killed while it handed over data; most often memory '
            "ran out: lower num_workers, batch_size or the loader's prefetch_factor"
        ) from err


def _make_work_dir(cfg: Config) -> None:
    try:
        Path(cfg.work_dir).mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=cfg.work_dir).close()
    except OSError as err:
        text = f'the work folder {cfg.work_dir} cannot be written: {err.strerror}'
        raise OSError(err.errno, f'{text}; name another by --work-dir') from err


def _check_constructor(cfg: Config, wrapper: ConfigDict) -> None:
    # That of mmpose decays by the names of other backbones: ours not at all, unsaid.
    own, scope = 'LayerDecayOptimWrapperConstructor', cfg.get('default_scope')
    backbone = (cfg.get('model', {}).get('backbone') or {}).get('type')
    is_ours = backbone == 'sapiens2_mm.Sapiens2' and scope != 'sapiens2_mm'
    if is_ours and wrapper.get('constructor') == own:
        raise ValueError(
            f'optim_wrapper.constructor {own!r} is looked for in {scope}, whose own '
            f"does not know the layers of {backbone}; write 'sapiens2_mm.{own}'"
        )


def _check_epochs(cfg: Config) -> None:
    loop, loader = cfg.get('train_cfg') or {}, cfg.get('train_dataloader') or {}
    by_epoch = loop.get('by_epoch') or 'EpochBased' in str(loop.get('type'))
    sampler = str((loader.get('sampler') or {}).get('type'))
    if by_epoch and sampler.rpartition('.')[2] in ('InfiniteSampler', 'DrawSampler'):
        raise ValueError(
            f'train_cfg trains by epochs, and with {sampler} an epoch never ends; set '
            "train_dataloader.sampler = dict(type='DefaultSampler', shuffle=True, "
            '_delete_=True), or train_cfg = dict(by_epoch=False, max_iters=...)'
        )


def _set_up_loaders(cfg: Config) -> None:
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        loader = cfg.get(name) or {}
        if loader.get('num_workers') == 0:  # torch refuses what is for workers
            loader.pop('persistent_workers', None)
            loader.pop('prefetch_factor', None)
        sampler = loader.get('sampler') or {}
        if 'strategy' in cfg and sampler.get('round_up') is False:
            sampler['round_up'] = True  # all gather weights equally often, or wait
        if loader.get('drop_last') and name != 'train_dataloader':
            raise ValueError(f'{name}.drop_last spoils the metrics; remove it')


def _name_file_of_backbone(cfg: Config) -> None:
    # To draw random weights first, which the file replaces, takes long.
    model = cfg.get('model', {})
    path = cfg.get('load_from') or whole_model_file(model.get('init_cfg'))
    load = cfg.default_hooks['load']
    if not path or cfg.get('resume') or not load or load.get('allow_missing'):
        return
    model = model.get('module', model)  # test-time augmentation wraps it
    backbone = model.get('backbone') or {}
    if backbone.get('type') == 'sapiens2_mm.Sapiens2' and not backbone.get('init_cfg'):
        backbone['init_cfg'] = dict(type='Pretrained', checkpoint=path)


def use_bf16_autocast(cfg: Config) -> None:
    """Train under bfloat16 autocast, on a GPU as on the CPU.

    Raises:
        ValueError: if the config's optimizer wrapper is of another kind.
    """
    wrapper = cfg.optim_wrapper
    kind = wrapper.get('type', 'OptimWrapper')
    ours = 'sapiens2_mm.AutocastOptimWrapper'
    if kind not in ('OptimWrapper', 'AmpOptimWrapper', ours):
        reason = f'the config has {kind!r}; set its precision in the config'
        raise ValueError(f'--amp replaces an OptimWrapper, but {reason}')
    wrapper.type = ours
    wrapper.dtype = 'bfloat16'
    wrapper.pop('loss_scale', None)


def resume(cfg: Config, path: str) -> None:
    """Continue a run: ``'auto'`` is the latest checkpoint of the work folder.

    A run that has saved none yet starts from the beginning, with its ``load_from``.
    """
    if path == 'auto' and latest_checkpoint(cfg.work_dir) is None:
        print_log(
            f'{cfg.work_dir} holds no checkpoint to resume from; the run starts anew',
            logger='current',
            level=logging.WARNING,
        )
        return
    cfg.resume = True
    cfg.load_from = None if path == 'auto' else path


def scale_lr_to_batch(cfg: Config) -> None:
    """Scale the learning rate by real batch / ``auto_scale_lr.base_batch_size``.

    Raises:
        ValueError: if the config does not say its base batch size.
    """
    if 'base_batch_size' not in cfg.get('auto_scale_lr', {}):
        raise ValueError(
            '--auto-scale-lr needs auto_scale_lr = dict(base_batch_size=...) in the '
            'config: the total batch its learning rate was chosen for'
        )
    cfg.auto_scale_lr.enable = True


def use_tta(cfg: Config) -> None:
    """Test with the config's ``tta_model`` and ``tta_pipeline``.

    Raises:
        ValueError: if the config has none.
    """
    missing = [key for key in ('tta_model', 'tta_pipeline') if key not in cfg]
    if missing:
        names = ' and '.join(missing)
        raise ValueError(f'--tta needs {names} in the config; add them or leave it out')
    _set_pipeline(cfg.test_dataloader.dataset, cfg.tta_pipeline)
    cfg.model = ConfigDict(**cfg.tta_model, module=cfg.model)


def _set_pipeline(dataset: ConfigDict, pipeline: list[dict]) -> None:
    """Of a dataset, or of those in a wrapper that has no pipeline of its own."""
    parts = dataset.get('datasets') or [dataset.get('dataset')]
    if dataset.get('pipeline') or parts == [None]:
        dataset.pipeline = pipeline
        return
    for part in parts:
        _set_pipeline(part, pipeline)


def dump_predictions(cfg: Config, path: str) -> None:
    """Also write all predictions to a pickle file at the end of the test."""
    evaluators = cfg.get('test_evaluator') or []
    if not isinstance(evaluators, list | tuple):
        evaluators = [evaluators]
    cfg.test_evaluator = [*evaluators, dict(type='DumpResults', out_file_path=path)]


def draw_predictions(cfg: Config, folder: str) -> None:
    """Write a picture of every prediction to ``folder``."""
    drawing = dict(type='sapiens2_mm.VisualizationHook', enable=True, out_dir=folder)
    hooks = cfg.get('default_hooks') or {}
    cfg.default_hooks = {**hooks, 'visualization': drawing}
