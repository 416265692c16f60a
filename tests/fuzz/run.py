"""Spoil data and configs at random: what comes is a documented error or a batch.

``PYTHONPATH=.:tests python -m fuzz.run --number 2000`` runs as many seeded cases of all
tasks, every tenth through a training step of a tiny model, and exits with 1 if one
raises anything but a documented error, hangs, or has a loss that is not finite.
``--case N`` repeats one with its traceback.
"""

import argparse
import copy
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzz.mutations import spoil_config, spoil_file
from fuzz.tasks import SIZE, TASKS
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.logging import MMLogger
from mmengine.registry import init_default_scope
from tiny_models import HOSTS, model_cfg, randomized

from sapiens2_mm.registry import DATASETS, MODELS

CONFIGS = Path(__file__).parents[2] / 'configs'
SECONDS = 60  # the machine may be busy with other work
# What docstrings name; mmengine's own for a name that is not registered, and for a
# training set of which no sample passes the filters of the pipeline.
DOCUMENTED = (ValueError, OSError)
KNOWN_MESSAGES = (
    'is not in the',
    'Cannot find valid image',
    'names no image',
    'images in a row cannot be used',
    'unexpected keyword argument',
)


def is_documented(err: BaseException) -> bool:
    """Whether a user is told what is wrong."""
    if isinstance(err, UnicodeError):
        return False
    if isinstance(err, DOCUMENTED):
        return bool(str(err))
    return any(message in str(err) for message in KNOWN_MESSAGES)


@cache
def model_of(task: str) -> Any:
    """A tiny model with the losses of the released one."""
    cfg = model_cfg(*TASKS[task].model).model
    released = Config.fromfile(CONFIGS / f'_base_/models/sapiens2_{task}.py').model
    head = cfg.get('decode_head', {})
    for key, losses in released.get('decode_head', {}).items():
        if key.startswith('loss'):
            head[key] = losses
    if task == 'seg':
        head.loss_decode[0].pop('class_weight')
        cfg.data_preprocessor.size = SIZE
    return randomized(MODELS.build(cfg)).train()


def run_case(number: int, root: Path) -> str:
    """Spoil something and load everything.

    Args:
        number: of the case, its seed.
        root: folder of clean data of all tasks, by name.

    Returns:
        What was spoilt.

    Raises:
        FloatingPointError: for a loss that is not finite.
    """
    rng = np.random.default_rng(number)
    name = list(TASKS)[number % len(TASKS)]
    task = TASKS[name]
    what = f'{number} {name}: '
    scope = HOSTS.get(name, 'sapiens2_mm')
    init_default_scope(scope)
    cfg = copy.deepcopy(task.dataset)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / 'data'
        shutil.copytree(root / name, data)
        if rng.random() < 0.25:
            what += spoil_config(cfg, task.options, rng)
        else:
            files = sorted(path for path in data.rglob('*') if path.is_file())
            # the lists of samples as often as all others together
            lists = [path for path in files if path.stem == 'train']
            path = (lists or files)[0] if rng.random() < 0.4 else None
            path = path or files[rng.integers(len(files))]
            what += f'{spoil_file(path, rng)} {path.relative_to(data)}'
        run_case.what = what
        np.random.seed(number)
        torch.manual_seed(number)
        dataset = DATASETS.build({**cfg, 'data_root': str(data)})
        samples = [dataset[index] for index in range(len(dataset))]
        if task.model is not None:
            batch = pseudo_collate(samples)
            if (number // len(TASKS)) % 10 == 0:
                _train(model_of(name), batch)
    return what


def _train(model: Any, batch: dict) -> None:
    data = model.data_preprocessor(batch, True)
    losses = model(**data, mode='loss')
    total, values = model.parse_losses(losses)
    model.zero_grad()
    total.backward()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    finite = [value.isfinite().all() for value in (*values.values(), *grads)]
    if not all(finite):
        raise FloatingPointError(f'losses {values} or a gradient are not finite')


def _too_long(*args: Any) -> None:
    raise TimeoutError(f'no end after {SECONDS} s')


def run(numbers: Sequence[int], root: Path) -> tuple[Counter[str], list[str]]:
    """Counts of outcomes, and the cases that went wrong; these are written at once."""
    for name, task in TASKS.items():
        (root / name).mkdir()
        task.write(root / name)
    counts: Counter[str] = Counter()
    wrong = []
    signal.signal(signal.SIGALRM, _too_long)
    for done, number in enumerate(numbers):
        if done and done % 100 == 0:
            sys.stdout.write(f'{done} of {len(numbers)}: {dict(counts)}\n')
            sys.stdout.flush()
        signal.alarm(SECONDS)
        try:
            run_case(number, root)
            counts['loaded'] += 1
        except Exception as err:
            signal.alarm(0)
            if is_documented(err) and not isinstance(err, TimeoutError):
                counts['refused'] += 1
            else:
                place = traceback.extract_tb(err.__traceback__)[-1]
                counts['wrong'] += 1
                wrong.append(
                    f'{run_case.what}: {type(err).__name__}: {err!s:.200} '
                    f'({place.filename}:{place.lineno})'
                )
                sys.stdout.write(f'{wrong[-1]}\n')
                sys.stdout.flush()
        finally:
            signal.alarm(0)
    return counts, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--number', type=int, default=200, help='of cases')
    parser.add_argument('--first', type=int, default=0, help='number of the first one')
    parser.add_argument('--case', type=int, help='run this one and let it raise')
    args = parser.parse_args()
    MMLogger.get_instance('fuzz', log_level='ERROR')
    warnings.simplefilter('ignore')
    with tempfile.TemporaryDirectory() as folder:
        if args.case is not None:
            run(range(0), Path(folder))
            sys.stdout.write(f'{run_case(args.case, Path(folder))}\n')
            return
        counts, wrong = run(range(args.first, args.first + args.number), Path(folder))
    sys.stdout.write(f'{dict(counts)}\n')
    sys.exit(bool(wrong))


if __name__ == '__main__':
    main()
