"""Pictures per second of ``predict_to_folder`` against one picture after the other.

``python tools/benchmark/inference.py`` predicts the normals of generated pictures with
a random model, in both ways with the same functions: decode, prepare, forward, draw,
write. It prints both speeds, their ratio, and the share of the time outside the
forward pass. The ratio needs two idle cores.
"""

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

import cv2
import numpy as np
import torch
from mmengine.logging import MMLogger

from sapiens2_mm.apis import Inferencer, init_model, predict_to_folder
from sapiens2_mm.apis.inputs import read_picture
from sapiens2_mm.apis.tasks import Job
from sapiens2_mm.apis.writers import writer_class

TINY = (
    'configs/normal/sapiens2-tiny_normal-pixelshuffle_1xb4_synthetic-humans-256x192.py'
)


def make_pictures(folder: Path, number: int) -> list[Path]:
    """Smooth JPEGs of 1280 x 960."""
    rng = np.random.default_rng(0)
    paths = [folder / f'{index:03d}.jpg' for index in range(number)]
    for path in paths:
        coarse = rng.integers(0, 256, (16, 12, 3), dtype=np.uint8)
        cv2.imwrite(str(path), cv2.resize(coarse, (960, 1280), interpolation=3))
    return paths


def one_by_one(inferencer: Inferencer, paths: list[Path], out: Path, save: str) -> None:
    writer = writer_class(inferencer)(inferencer, out / 'normal', save)
    for path in paths:
        job = Job(read_picture(path))
        outputs = inferencer.forward(list(inferencer.task.samples(job)))
        writer.write(inferencer.task.result(job, outputs), path.stem)
    writer.finish()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--config', default=TINY)
    parser.add_argument('--pictures', type=int, default=24)
    parser.add_argument('--save', default='json,png,npz')
    parser.add_argument('--repeats', type=int, default=3)
    parser.add_argument('--threads', type=int, default=1, help='of torch (1)')
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    MMLogger.get_current_instance().setLevel('ERROR')
    torch.set_num_threads(args.threads)
    inferencer = Inferencer(init_model(args.config))
    save, forward, inside = args.save.split(','), inferencer.forward, [0.0]

    def timed(samples: list) -> list:
        start = time.perf_counter()
        outputs = forward(samples)
        inside[0] += time.perf_counter() - start
        return outputs

    inferencer.forward = timed
    with tempfile.TemporaryDirectory() as folder:
        paths = make_pictures(Path(folder), args.pictures)
        ways = dict(
            plain=lambda out: one_by_one(inferencer, paths, out, save),
            ours=lambda out: predict_to_folder(
                {'normal': inferencer}, paths, out, save=save
            ),
        )
        best = dict.fromkeys(ways, (float('inf'), 0.0))
        for repeat in range(args.repeats):
            for way, run in ways.items():
                inside[0], start = 0.0, time.perf_counter()
                run(Path(folder) / f'{way}{repeat}')
                seconds = time.perf_counter() - start
                best[way] = min(best[way], (seconds, 1 - inside[0] / seconds))
    for way, (seconds, outside) in best.items():
        sys.stdout.write(
            f'{way:5s} {args.pictures / seconds:6.2f} pictures/s, '
            f'{outside:.0%} of the time outside the forward pass\n'
        )
    ratio = best['plain'][0] / best['ours'][0]
    sys.stdout.write(f'ours / plain: {ratio:.2f}\n')


if __name__ == '__main__':
    main()
