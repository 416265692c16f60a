"""Time and peak memory of ``init_model`` against a bare ``safetensors.load_file``.

``python tools/benchmark/load.py``. Writes a float32 file of the chosen size, measures
both in fresh processes, with the file on the disk alone (cold) and in the page cache
(warm), prints the ratios, and deletes the file. Both map the file, so "loaded" means
that every page of every tensor has been read once.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from mmengine.config import Config
from torch import Tensor

from sapiens2_mm.apis import init_model
from sapiens2_mm.models import Sapiens2
from sapiens2_mm.models.backbones.arch import ARCHS

_PAGE = 4096


def write_weights(path: Path, arch: str) -> int:
    """Write random float32 weights of a backbone piece by piece; returns the bytes."""
    with torch.device('meta'):
        shapes = {k: v.shape for k, v in Sapiens2(arch).state_dict().items()}
    header, end = {}, 0
    for key, shape in shapes.items():
        start, end = end, end + 4 * shape.numel()
        header[key] = dict(dtype='F32', shape=list(shape), data_offsets=[start, end])
    text = json.dumps(header).encode()
    text += b' ' * (-len(text) % 64)
    block = np.random.default_rng(0).normal(0, 0.02, 1 << 22).astype(np.float32)
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text)
        rest = end
        while rest:
            rest -= file.write(memoryview(block).cast('B')[:rest])
        file.flush()
        os.fsync(file.fileno())
    return path.stat().st_size


def forget(path: Path) -> None:
    """Drop the file from the page cache."""
    with open(path, 'rb') as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def touch(tensors: Iterable[Tensor]) -> None:
    """Read one value of every page."""
    for tensor in tensors:
        flat = tensor.detach().flatten()
        flat[:: _PAGE // flat.element_size()].sum()


def peak_bytes() -> int:
    status = Path('/proc/self/status').read_text()
    return 1024 * int(status.split('VmHWM:')[1].split()[0])


def measure(path: Path, arch: str, way: str) -> dict[str, float]:
    """Seconds, and the growth of peak memory in bytes."""
    # first calls of a process are not what is measured
    touch([torch.ones(8)])
    Sapiens2(dict(embed_dims=32, num_layers=1, num_heads=1, feedforward_channels=32))
    model = dict(type='sapiens2_mm.Sapiens2', arch=arch)
    cfg = Config(dict(default_scope='sapiens2_mm', model=model))
    before, start = peak_bytes(), time.perf_counter()
    if way == 'bare':
        from safetensors.torch import load_file

        state = load_file(path)
        touch(state.values())
    else:
        dtype = torch.bfloat16 if way == 'bf16' else None
        state = init_model(cfg, path, dtype=dtype)
        touch([*state.parameters(), *state.buffers()])
    seconds = time.perf_counter() - start
    return dict(seconds=seconds, bytes=peak_bytes() - before, all_bytes=peak_bytes())


def in_new_process(path: Path, arch: str, way: str) -> dict[str, float]:
    command = [sys.executable, __file__, '--arch', arch, '--measure', way, str(path)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(result.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--arch', default='sapiens2_1b', choices=ARCHS)
    parser.add_argument('--folder', help='where the file is written (default: temp)')
    parser.add_argument('--repeats', type=int, default=2, help='the best one counts')
    parser.add_argument('--measure', nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        way, path = args.measure
        print(json.dumps(measure(Path(path), args.arch, way)))
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        path = Path(folder) / 'weights.safetensors'
        size = write_weights(path, args.arch)
        print(f'{args.arch}: {size / 1e9:.2f} GB float32')
        for cache in ('cold', 'warm'):
            found: dict[str, dict[str, float]] = {}
            for _ in range(args.repeats):  # in turns: a busy machine changes all alike
                for way in ('bare', 'ours', 'bf16'):
                    if cache == 'cold':
                        forget(path)
                    one = in_new_process(path, args.arch, way)
                    best = found.get(way, one)
                    found[way] = min(one, best, key=lambda result: result['seconds'])
            for way, result in found.items():
                print(
                    f'{cache} {way}: {result["seconds"]:.2f} s, peak '
                    f'{result["bytes"] / 1e9:.2f} GB over the start '
                    f'({result["all_bytes"] / 1e9:.2f} GB in all)'
                )
            seconds = found['ours']['seconds'] / found['bare']['seconds']
            print(
                f'{cache}: time {seconds:.2f} x load_file, '
                f'memory {found["ours"]["all_bytes"] / size:.2f} x file'
            )


if __name__ == '__main__':
    main()
