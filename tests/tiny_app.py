"""What the tests of the web page share."""

from pathlib import Path

import torch

from sapiens2_mm.apis import Inferencer, init_model


def tiny_inferencers(repo_dir: Path, *tasks: str) -> dict[str, Inferencer]:
    """Models of the quickstart with random weights."""
    inferencers = {}
    for task in tasks:
        folder = repo_dir / 'configs' / task
        (config,) = folder.glob('sapiens2-tiny_*_synthetic-humans-*.py')
        torch.manual_seed(0)
        inferencers[task] = Inferencer(init_model(config))
    return inferencers
