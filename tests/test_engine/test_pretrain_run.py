"""Whole pretraining runs at tiny size: resume, accumulation, processes, data faults."""

import copy
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner
from safetensors.torch import load_file, save_file

pytest.importorskip('mmpretrain')

from broken_images import stops_with_finite_weights, weights_of

from sapiens2_mm.models.selfsup import BlockPatchMask
from sapiens2_mm.registry import MODELS

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
PIPELINE = [
    dict(
        type='sapiens2_mm.MultiViewCrop',
        views=[
            dict(num_views=2, size=(128, 96), area=(0.5, 1.0)),
            dict(num_views=4, size=(64, 48), area=(0.2, 0.7), jitter_prob=0.8),
        ],
    ),
    dict(type='sapiens2_mm.DrawTokenMasks'),
    dict(
        type='mmpretrain.PackInputs',
        algorithm_keys=('ids_keep',),
        meta_keys=('img_path', 'skipped', 'position'),
    ),
]


@pytest.fixture
def make_config(repo_dir: Path, data_dir: Path, tmp_path: Path):
    def make(name: str, max_iters: int = 6, **dataset) -> Config:
        config = 'sapiens2-tiny_mae-contrast_1xb16_synthetic-humans-128x96.py'
        cfg = Config.fromfile(repo_dir / 'configs' / 'pretrain' / config)
        cfg.model.backbone.arch = ARCH
        cfg.model.backbone.patch_size = 16
        cfg.model.neck.update(out_channels=768, embed_dims=32, num_layers=1)
        cfg.model.head.update(hidden_dims=32, bottleneck_dims=16, num_prototypes=24)
        cfg.work_dir = str(tmp_path / name)
        cfg.experiment_name = name
        cfg.train_dataloader.update(
            batch_size=2, num_workers=0, persistent_workers=False
        )
        cfg.train_dataloader.dataset.update(
            data_root=str(data_dir / 'synthetic_humans' / 'rgb'),
            ann_file='',
            pipeline=PIPELINE,
        )
        cfg.train_dataloader.dataset.update(dataset)
        cfg.train_cfg.max_iters = max_iters
        cfg.param_scheduler = [
            dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=5)
        ]
        cfg.default_hooks.checkpoint.interval = 3
        cfg.custom_hooks[2].interval = 3
        return cfg

    return make


def test_a_loss_that_is_not_finite_stops_the_run(make_config):
    """Teacher and center stay finite; the center does not move without logits."""
    cfg = make_config('broken', 9)
    cfg.default_hooks.checkpoint.update(interval=1, save_last=False)
    runner = Runner.from_cfg(cfg)
    stops_with_finite_weights(runner, 'loss_mae is nan, loss_contrast', r'00000\d')
    centers = [
        weights_of(Path(cfg.work_dir) / f'iter_{number}.pth')['centering.center']
        for number in (2, 3, 4)
    ]
    assert centers[0].equal(centers[2]) and (centers[0] != 0).any()


def train(cfg: Config) -> Runner:
    runner = Runner.from_cfg(copy.deepcopy(cfg))
    runner.train()
    return runner


def history(runner: Runner, name: str = 'train/loss') -> list[float]:
    return list(runner.message_hub.get_scalar(name).data[0])


def assert_same_state(
    first: Runner, second: Runner, skip: tuple[str, ...] = (), **tolerance: float
) -> None:
    ours, theirs = first.model.state_dict(), second.model.state_dict()
    assert list(ours) == list(theirs)
    for name in set(ours) - set(skip):
        value = ours[name]
        torch.testing.assert_close(theirs[name], value, **tolerance)


def resumed(cfg: Config, source: Config) -> Runner:
    cfg.resume = True
    cfg.load_from = str(Path(source.work_dir) / 'iter_3.pth')
    return train(cfg)


@pytest.mark.parametrize('num_workers', [0, 2])
def test_resume_is_a_continuation(make_config, num_workers):
    straight = make_config(f'straight{num_workers}')
    second = make_config(f'second{num_workers}')
    for cfg in (straight, second):
        cfg.train_dataloader.num_workers = num_workers
        cfg.train_dataloader.persistent_workers = num_workers > 0
        # uses global random numbers of the training process
        cfg.model.backbone.update(drop_path_rate=0.2, rope_shift=0.1)
    first, again = train(straight), resumed(second, straight)
    assert_same_state(first, again, rtol=0, atol=0)
    assert history(first)[3:] == history(again)[-3:]
    assert history(first, 'train/lr')[3:] == history(again, 'train/lr')[-3:]
    assert int(again.model.iteration) == 6 and int(again.model.num_samples) == 12


def seeded(cfg: Config, seed: int) -> Config:
    cfg.randomness.seed = seed
    return cfg


class FirstBatch(Hook):
    """Keeps names and views of the first batch, and the masks that the model drew."""

    def before_train(self, runner: Runner) -> None:
        self.masks = []
        runner.model.neck.register_forward_pre_hook(
            lambda _, args: self.masks.append(args[1].mask)
        )

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if runner.iter == 0:
            self.names = [s.img_path for s in data_batch['data_samples']]
            self.views = data_batch['inputs']


def first_batch(cfg: Config) -> tuple[FirstBatch, dict]:
    cfg.train_cfg.max_iters = 1
    runner = Runner.from_cfg(copy.deepcopy(cfg))
    seen = FirstBatch()
    runner.register_hook(seen)
    runner.train()
    return seen, runner.model.state_dict()


@pytest.mark.parametrize('num_workers', [0, 2])
def test_the_seed_of_the_run_decides_everything(make_config, num_workers):
    runs = []
    for seed in (1, 1, 4):
        cfg = seeded(make_config('run'), seed)
        cfg.train_dataloader.num_workers = num_workers
        runs.append(first_batch(cfg))
    (one, weights), (again, same), (two, others) = runs
    order = [[Path(n).stem for n in run.names] for run in (one, two)]
    assert order == [['000004', '000001'], ['000000', '000003']]
    assert again.names == one.names
    assert all(torch.equal(a, b) for a, b in zip(one.views, again.views, strict=True))
    assert torch.equal(one.masks[0], again.masks[0])
    assert all(torch.equal(weights[name], same[name]) for name in weights)
    assert not any(torch.equal(a, b) for a, b in zip(one.views, two.views, strict=True))
    assert not torch.equal(one.masks[0], two.masks[0])
    assert not torch.equal(weights['neck.mask_token'], others['neck.mask_token'])


def test_loader_workers_draw_the_masks(make_config, monkeypatch):
    def refuse(self, *args):
        raise AssertionError('masks drawn by the training process')

    def masks(num_workers: int) -> torch.Tensor:
        cfg = make_config('run')
        cfg.train_dataloader.num_workers = num_workers
        with monkeypatch.context() as patch:
            patch.setattr(BlockPatchMask, '__call__', refuse)
            return first_batch(cfg)[0].masks[0]

    mask = masks(1)
    assert (mask.sum(1) == 36).all() and not torch.equal(mask[:2], mask[2:])
    assert torch.equal(mask, masks(0))


def test_an_explicit_seed_wins(make_config):
    runs = []
    for seed in (1, 2):
        cfg = seeded(make_config('run', seed=7), seed)
        cfg.train_dataloader.sampler.seed = 7
        cfg.model.mask_generator.seed = 7
        runs.append(first_batch(cfg))
    (one, weights), (two, others) = runs
    assert one.names == two.names
    assert all(torch.equal(a, b) for a, b in zip(one.views, two.views, strict=True))
    assert torch.equal(one.masks[0], two.masks[0])
    assert not torch.equal(weights['neck.mask_token'], others['neck.mask_token'])


@pytest.mark.parametrize('diff_rank_seed', [True, False])
def test_a_resumed_run_keeps_its_seed(make_config, diff_rank_seed):
    straight, second = seeded(make_config('straight'), 2), make_config('second')
    for cfg in (straight, second):
        cfg.randomness.diff_rank_seed = diff_rank_seed
    first, again = train(straight), resumed(seeded(second, 3), straight)
    assert_same_state(first, again, rtol=0, atol=0)
    assert history(first)[3:] == history(again)[-3:]


def test_resume_of_tar_shards(make_config, data_dir, tmp_path):
    webdataset = pytest.importorskip('webdataset')
    (tmp_path / 'shards').mkdir()
    files = sorted((data_dir / 'synthetic_humans' / 'rgb').glob('*.jpg'))
    for number, path in enumerate(files):
        name = str(tmp_path / 'shards' / f'{number}.tar')
        with webdataset.TarWriter(name) as writer:
            writer.write({'__key__': path.stem, 'jpg': path.read_bytes()})
    cfgs = []
    for name in ('straight', 'second'):
        cfg = make_config(name)
        cfg.train_dataloader.update(
            num_workers=2, persistent_workers=True, sampler=None
        )
        cfg.train_dataloader.dataset = dict(
            type='sapiens2_mm.TarShardDataset',
            shards=[str(tmp_path / 'shards'), 'pipe:exit 1'],  # one fails
            num_retries=0,
            shuffle_buffer=2,
            shards_per_block=2,
            pipeline=PIPELINE,
        )
        cfgs.append(cfg)
    first, again = train(cfgs[0]), resumed(cfgs[1], cfgs[0])
    assert_same_state(first, again, rtol=0, atol=0)
    for runner in (first, again):
        report = Path(runner.log_dir, 'unusable_images.txt').read_text('utf-8')
        assert (
            report == 'pipe:exit 1: OSError: exit status 1 of exit 1; tried 1 times\n'
        )


def test_reports_of_unusable_images_survive_a_resume(make_config, data_dir, tmp_path):
    good = data_dir / 'synthetic_humans' / 'rgb' / '000001.jpg'
    shutil.copytree(good.parent, tmp_path / 'images')
    (tmp_path / 'images' / good.name).write_text('text')
    straight, second = (
        make_config(name, data_root=str(tmp_path / 'images'))
        for name in ('straight', 'second')
    )
    train(straight)
    shutil.copy(good, tmp_path / 'images')  # only the report knows of it now
    again = resumed(second, straight)
    report = Path(again.log_dir, 'unusable_images.txt').read_text('utf-8')
    assert '000001.jpg: cannot identify' in report and len(report.splitlines()) == 1


def test_resume_does_not_read_old_images(make_config, monkeypatch):
    straight = make_config('straight')
    train(straight)
    reads = []
    from sapiens2_mm.datasets.pretrain import unlabeled_image_dataset as module

    read = module.read_image

    def noted(path: str, **kwargs):
        reads.append(path)
        return read(path, **kwargs)

    monkeypatch.setattr(module, 'read_image', noted)
    resumed(make_config('second'), straight)
    assert len(reads) == 6  # 3 iterations of 2


def test_other_data_cannot_seek(make_config):
    straight = make_config('straight')
    train(straight)
    cfg = make_config('second')
    cfg.train_dataloader.sampler = dict(type='InfiniteSampler')
    with pytest.raises(TypeError, match=r'cannot continue the data of Unlabeled.*Draw'):
        resumed(cfg, straight)


def test_accumulation_equals_a_larger_batch(make_config):
    """All losses but KoLeo are plain means; the schedule counts iterations."""
    runs = []
    for batch_size, accumulate in ((2, 1), (1, 2)):
        cfg = make_config(f'by{accumulate}', max_iters=3 * accumulate)
        cfg.model.koleo_loss = None
        cfg.train_dataloader.batch_size = batch_size
        cfg.optim_wrapper.optimizer = dict(type='SGD', lr=0.01)
        cfg.optim_wrapper.accumulative_counts = accumulate
        cfg.optim_wrapper.clip_grad = None
        cfg.param_scheduler = []
        runs.append(train(cfg))
    assert [int(run.model.iteration) for run in runs] == [3, 3]
    assert_same_state(*runs, rtol=0, atol=1e-5)


def test_end_of_a_run(make_config, data_dir, tmp_path):
    """Bad files are named, encoders written, pictures drawn; nothing is fatal."""
    folder = tmp_path / 'тест é'
    shutil.copytree(data_dir / 'synthetic_humans' / 'rgb', folder)
    half = (folder / '000001.jpg').read_bytes()
    (folder / '000001.jpg').write_bytes(half[: len(half) // 2])
    (folder / '000002.jpg').write_text('text')
    cfg = make_config('run', max_iters=6, data_root=str(folder))
    cfg.custom_hooks[0].update(min_information=10.0, patience=6)
    runner = train(cfg)
    report = (Path(runner.log_dir) / 'unusable_images.txt').read_text('utf-8')
    lines = report.splitlines()
    assert len(lines) == 2
    assert '000001.jpg: image file is truncated' in lines[0]
    assert '000002.jpg: cannot identify' in lines[1]
    log = Path(runner.log_dir, f'{runner.timestamp}.log').read_text('utf-8')
    assert '2 images could not be used' in log and '000002.jpg' in log

    for which, source in (
        ('student', runner.model.backbone),
        ('teacher', runner.model.teacher.backbone),
    ):
        path = Path(cfg.work_dir) / f'backbone_{which}.safetensors'
        plain = MODELS.build(
            dict(
                type='sapiens2_mm.Sapiens2',
                arch=ARCH,
                rope_dtype='fp32',
                init_cfg=dict(type='Pretrained', checkpoint=str(path)),
            )
        )
        plain.init_weights()
        assert torch.equal(plain.cls_token, source.cls_token)
        assert set(load_file(path)) == set(plain.state_dict())

    pictures = sorted(Path(runner.log_dir).rglob('reconstruction_*.png'))
    assert [picture.stem for picture in pictures] == [
        'reconstruction_3', 'reconstruction_6',
    ]  # fmt: skip
    assert cv2.imread(str(pictures[0])).shape == (2 * 128, 5 * 96, 3)
    for name in ('loss_mae', 'loss_contrast', 'loss_koleo', 'teacher_entropy',
                 'teacher_kl_uniform', 'teacher_entropy_of_mean',
                 'teacher_mutual_information', 'cls_std', 'grad_norm'):  # fmt: skip
        assert len(history(runner, f'train/{name}')) == 6
    assert history(runner, 'train/skipped_images')[-1] == 2
    assert 'skipped_images: 2' in log
    assert log.count('THE CONTRAST IS DEAD: for 6 iterations') == 1


@pytest.mark.parametrize('way', ['load_from', 'init_cfg'])
def test_continue_from_an_encoder(make_config, tmp_path, way):
    """Student and teacher both start from it."""
    torch.manual_seed(5)
    plain = dict(type='sapiens2_mm.Sapiens2', arch=ARCH, rope_dtype='fp32')
    plain = MODELS.build(plain)
    plain.init_weights()
    path = str(tmp_path / 'encoder.safetensors')
    save_file(plain.state_dict(), path)
    cfg = make_config('run', max_iters=1)
    cfg.optim_wrapper.optimizer.lr = 0.0
    if way == 'load_from':
        cfg.load_from = path
    else:
        init_cfg = dict(type='Pretrained', checkpoint=path)
        cfg.model.backbone.init_cfg = init_cfg
    model = train(cfg).model
    for encoder in (model.backbone, model.teacher.backbone):
        for name, value in plain.state_dict().items():
            assert torch.equal(encoder.state_dict()[name], value), name
    for own, other in zip(
        model.head.parameters(), model.teacher.head.parameters(), strict=True
    ):
        assert torch.equal(own, other)


def test_a_second_stage_begins_the_schedules_anew(make_config):
    """``load_from`` takes teacher and center along, but not the steps done."""
    straight = make_config('straight', max_iters=3)
    first = train(straight)
    assert int(first.model.iteration) == 3 and int(first.model.num_samples) == 6
    cfg = make_config('second', max_iters=1)
    cfg.load_from = str(Path(straight.work_dir) / 'iter_3.pth')
    cfg.optim_wrapper.optimizer.lr = 0.0
    cfg.model.update(teacher_momentum=1.0, centering=dict(momentum=1.0))
    cfg.param_scheduler = []
    second = train(cfg)
    assert_same_state(first, second, skip=('iteration', 'num_samples'), rtol=0, atol=0)
    assert int(second.model.iteration) == 1 and int(second.model.num_samples) == 2


def test_reconstruction_alone_after_a_joint_stage(make_config):
    straight = make_config('straight', max_iters=3)
    first = train(straight)
    cfg = make_config('second', max_iters=1)
    cfg.load_from = str(Path(straight.work_dir) / 'iter_3.pth')
    cfg.optim_wrapper.optimizer.lr = 0.0
    cfg.model.update(dict.fromkeys(('head', 'contrast_loss', 'koleo_loss')))
    cfg.model.update(centering=None, num_local_views=0)
    cfg.train_dataloader.dataset.pipeline = copy.deepcopy(PIPELINE)
    cfg.train_dataloader.dataset.pipeline[0].views.pop()
    second = train(cfg).model
    assert second.teacher is None and int(second.iteration) == 1
    for ours, theirs in (
        (second.backbone, first.model.teacher.backbone),
        (second.neck, first.model.neck),
    ):
        for name, value in ours.state_dict().items():
            assert torch.equal(value, theirs.state_dict()[name]), name


def test_only_bad_images_end_the_run(make_config, tmp_path):
    (tmp_path / 'x').mkdir()
    (tmp_path / 'x' / 'a.jpg').write_text('text')
    cfg = make_config('run', data_root=str(tmp_path / 'x'), max_skips=3)
    with pytest.raises(RuntimeError, match=r'4 images in a row cannot.*/a\.jpg'):
        train(cfg)


def test_parameter_groups(make_config):
    runner = Runner.from_cfg(make_config('run'))
    wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    groups = wrapper.optimizer.param_groups
    names = [name for group in groups for name in group['param_names']]
    trainable = [n for n, p in runner.model.named_parameters() if p.requires_grad]
    assert sorted(names) == sorted(trainable)  # each in exactly one group
    decayed = {n for g in groups if g['weight_decay'] > 0 for n in g['param_names']}
    plain = set(names) - decayed
    assert 'head.prototypes.weight' in decayed
    assert 'backbone.patch_embed.projection.weight' in decayed
    assert {'backbone.cls_token', 'backbone.storage_tokens', 'neck.mask_token'} <= plain
    for name in decayed:
        assert not any(key in name for key in ('bias', 'norm', 'gamma', 'ln', 'token'))


TWO_PROCESSES = """
import sys
from mmengine.config import Config
from sapiens2_mm.engine import launch
cfg = Config.fromfile(sys.argv[1])
launch.build_runner(cfg).train()
"""


@pytest.mark.slow
def test_two_processes_equal_one(make_config, tmp_path):
    """Gradients, center and KoLeo of 2 x 2 samples are those of 1 x 4."""
    script = tmp_path / 'run.py'
    script.write_text(TWO_PROCESSES)
    states = []
    for processes in (1, 2):
        cfg = make_config(f'on{processes}', max_iters=3)
        cfg.train_dataloader.batch_size = 4 // processes
        cfg.optim_wrapper.optimizer = dict(type='SGD', lr=0.1)
        cfg.custom_hooks[0].gather_koleo = True
        command = [sys.executable, str(script)]
        if processes == 2:
            cfg.launcher = 'pytorch'
            cfg.model_wrapper_cfg = dict(
                type='MMDistributedDataParallel', device_ids=None
            )
            run = ['-m', 'torch.distributed.run', '--standalone', '--nproc_per_node=2']
            command = [sys.executable, *run, str(script)]
        path = tmp_path / f'on{processes}.py'
        cfg.dump(path)
        command.append(str(path))
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr[-3000:]
        file = Path(cfg.work_dir) / 'iter_3.pth'
        states.append(torch.load(file, weights_only=False)['state_dict'])
    for name, value in states[0].items():
        if name != 'num_samples':  # of one process
            torch.testing.assert_close(states[1][name], value, rtol=0, atol=1e-5)
    assert float(states[0]['centering.center'].abs().max()) > 0
