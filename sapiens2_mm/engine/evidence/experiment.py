"""Every arm, seed, checkpoint and part of the labels: the whole comparison."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import torch
from mmengine.logging import print_log
from torch import Tensor

from sapiens2_mm.checkpoint.io.atomic import replacing

from . import pretraining
from .linear_probes import probe
from .probe_data import load_probe_data

NO_INPUT = 'no input'
RAW = 'raw patches'
RANDOM = 'random'
JOINT_TEACHER = 'joint, teacher'
# In the order of the table; all but the first two are encoders.
ROWS = (NO_INPUT, RAW, RANDOM, *pretraining.ARMS, JOINT_TEACHER)

# (share of the training, fraction of the labels) -> task -> sums of each test image
Sums = dict[tuple[float, float], dict[str, Tensor]]


@dataclass(frozen=True)
class Settings:
    """What decides a result, apart from the data.

    Args:
        data_root: of the synthetic humans; pretraining and probes use its train split,
            the metrics its val split.
        configs: the folder ``configs/pretrain``.
        seconds: processor time of each pretraining.
        batch_size: images of a step of pretraining.
        seeds: of pretraining, of the labeled images and of the probes.
        label_fractions: shares of the train images whose labels the probes use.
        shares: of the training, at which encoders are probed; 0 is before the first
            step and 1 the end.
        probe_iters: steps of the probes.
        probe_batch_size: images of such a step.
    """

    data_root: str
    configs: str
    seconds: float = 200.0
    batch_size: int = 8
    seeds: tuple[int, ...] = (1, 2, 3)
    label_fractions: tuple[float, ...] = (0.05, 1.0)
    shares: tuple[float, ...] = (0, 0.25, 0.5, 1)
    probe_iters: int = 200
    probe_batch_size: int = 16


@dataclass
class RunResult:
    """What one pretraining, or a baseline without one, came to.

    Args:
        sums: row of the table -> share and fraction -> task -> (N, ...).
        rates: the same with the learning rates that were chosen.
        training: see ``pretrain``; empty for a baseline.
    """

    sums: dict[str, Sums]
    rates: dict[str, dict[tuple[float, float], dict[str, float]]]
    training: dict[str, float]


def run_all(
    settings: Settings, out_dir: Path, workers: int
) -> dict[tuple[str, int], RunResult]:
    """Run what ``out_dir`` does not hold yet of these settings.

    Args:
        settings: of the comparison.
        out_dir: gets a file per run, and its encoders.
        workers: processes, one thread each.

    Returns:
        (arm, seed) -> result; the arm ``RAW`` holds both rows without an encoder.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    # the arms of a seed side by side, so that a busy machine is busy for all of them
    jobs = [(arm, seed) for seed in settings.seeds for arm in pretraining.ARMS]
    jobs += [(RAW, seed) for seed in settings.seeds]
    found: dict[tuple[str, int], RunResult] = {}
    with ProcessPoolExecutor(workers, mp_context=get_context('spawn')) as pool:
        futures = {pool.submit(_run, settings, out_dir, *job): job for job in jobs}
        for future in as_completed(futures):
            job = futures[future]
            found[job] = future.result()
            print_log(f'{len(found)}/{len(jobs)} {job}: {found[job].training}')
    return {job: found[job] for job in jobs}


def _run(settings: Settings, out_dir: Path, arm: str, seed: int) -> RunResult:
    """One process's work: pretrain, then probe every checkpoint."""
    torch.set_num_threads(1)
    name = f'{arm.replace(", ", "-").replace(" ", "-")}_{seed}'
    path = out_dir / f'{name}.pt'
    if path.is_file():
        stored = torch.load(path, weights_only=True)
        if stored['settings'] == asdict(settings):
            return RunResult(**stored['result'])
    train, test = (
        load_probe_data(settings.data_root, f'annotations/{split}.json')
        for split in ('train', 'val')
    )
    result = RunResult({}, {}, {})
    cfg = pretraining.arm_config(
        arm if arm in pretraining.ARMS else 'joint',
        settings.configs,
        settings.data_root,
    )
    cfg.train_dataloader.batch_size = settings.batch_size

    def add(row: str, share: float, features: Sequence[Tensor]) -> None:
        pairs = list(zip(features, (train, test), strict=True))
        for fraction in settings.label_fractions:
            key = share, fraction
            sums, rates = probe(
                *pairs,
                fraction,
                seed,
                settings.probe_iters,
                settings.probe_batch_size,
            )
            result.sums.setdefault(row, {})[key] = sums
            result.rates.setdefault(row, {})[key] = rates

    if arm == RAW:
        size = cfg.model.backbone.patch_size
        patches = [pretraining.raw_patches(x.images, size) for x in (train, test)]
        add(RAW, 0, patches)
        add(NO_INPUT, 0, [torch.zeros_like(x[..., :1]) for x in patches])
    else:
        folder = out_dir / name
        result.training = pretraining.pretrain(
            cfg, folder, seed, settings.seconds, settings.shares
        )
        for row, which, share in _encoders(arm, settings):
            file = folder / f'{which}_{share:g}.safetensors'
            add(
                row,
                share,
                [pretraining.encode(cfg, file, x.images) for x in (train, test)],
            )
    stored = dict(settings=asdict(settings), result=vars(result))
    with replacing(path) as temporary:
        torch.save(stored, temporary)
    return result


def _encoders(arm: str, settings: Settings) -> list[tuple[str, str, float]]:
    """Row, network and share of what is probed of an arm.

    The row ``RANDOM`` is where the joint arm starts.
    """
    encoders = [(arm, 'student', share) for share in settings.shares if share > 0]
    if arm == 'joint':
        encoders += [(RANDOM, 'student', 0), (JOINT_TEACHER, 'teacher', 1)]
    return encoders
