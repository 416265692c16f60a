"""Peak memory and time of the segmentation losses against their one-hot form.

``python tools/benchmark/seg_loss.py`` runs each form, forward and backward, in a
process of its own and prints the memory on top of what stood before.
"""

import argparse
import multiprocessing
import resource
import sys
import time

import torch
import torch.nn.functional as F
from torch import Tensor

from sapiens2_mm.datasets.metainfo.humans29 import CLASS_WEIGHTS
from sapiens2_mm.models.losses.seg import dice_loss, weighted_cross_entropy


def ours(logits: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    return weighted_cross_entropy(logits, labels, weight) + dice_loss(logits, labels)


def one_hot(logits: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    """The same two losses, Dice from one-hot planes."""
    logits = logits.float()
    entropy = F.cross_entropy(
        logits, labels, weight, ignore_index=255, reduction='none'
    ).mean()
    valid = labels != 255
    target = F.one_hot(labels * valid, logits.shape[1]).permute(0, 3, 1, 2).float()
    target = target * valid[:, None]
    prob = logits.softmax(1) * valid[:, None]
    overlap = (prob * target).sum((2, 3))
    total = prob.square().sum((2, 3)) + target.square().sum((2, 3))
    score = (2 * overlap + 1e-3) / (total + 1e-3)
    present = target.sum((2, 3)) > 0
    present[:, 0] = False
    dice = ((1 - score) * present).sum(1) / present.sum(1).clamp(min=1)
    return entropy + dice.mean()


FORMS = dict(ours=ours, one_hot=one_hot)


def measure(name: str, args: argparse.Namespace) -> tuple[float, float, float]:
    """(loss, MiB on top of logits and labels, seconds) of one forward and backward."""
    cuda = args.device.startswith('cuda')
    torch.manual_seed(0)
    shape = (args.batch_size, 29, *args.size)
    logits = torch.randn(shape, device=args.device).to(getattr(torch, args.dtype))
    logits.requires_grad_()
    labels = torch.randint(0, 29, (shape[0], *args.size), device=args.device)
    labels[:, :50] = 255
    weight = torch.tensor(CLASS_WEIGHTS, device=args.device)
    FORMS[name](logits[:, :, :16, :16], labels[:, :16, :16], weight)  # load libraries
    before = torch.cuda.memory_allocated() if cuda else _peak()
    if cuda:
        torch.cuda.synchronize()
    start = time.perf_counter()
    loss = FORMS[name](logits, labels, weight)
    loss.backward()
    value = loss.item()
    seconds = time.perf_counter() - start
    after = torch.cuda.max_memory_allocated() if cuda else _peak()
    return value, (after - before) / 2**20, seconds


def _peak() -> int:
    """Largest resident memory of this process so far, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--batch-size', type=int, default=2)
    parser.add_argument('--size', type=int, nargs=2, default=(1024, 768))
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--dtype', choices=['float32', 'bfloat16'], default='float32')
    args = parser.parse_args()
    context = multiprocessing.get_context('spawn')
    results = {}
    for name in FORMS:
        with context.Pool(1) as pool:
            results[name] = pool.apply(measure, (name, args))
        value, memory, seconds = results[name]
        sys.stdout.write(
            f'{name:8s} loss {value:.6f}  peak {memory:7.1f} MiB  {seconds:6.2f} s\n'
        )
    ratio = results['ours'][1] / results['one_hot'][1]
    sys.stdout.write(f'peak memory, ours / one_hot: {ratio:.2f}\n')


if __name__ == '__main__':
    main()
