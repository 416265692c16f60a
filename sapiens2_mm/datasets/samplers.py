"""Endless sampling that can start anywhere."""

from collections.abc import Iterator, Sized

import torch
from mmengine.dist import get_dist_info
from torch.utils.data import Sampler

from sapiens2_mm.registry import DATA_SAMPLERS


@DATA_SAMPLERS.register_module()
class DrawSampler(Sampler):
    """Endless shuffled passes over a dataset, shared by the processes of a run.

    Yields pairs (index, draw): draws count all samples of the run, over processes and
    passes, so that a dataset can make the randomness of a sample depend on the draw
    alone. Every pass has an order of its own that depends on the seed and the pass;
    ``seek`` therefore costs nothing.

    Args:
        dataset: its length counts.
        shuffle: whether passes are shuffled.
        seed: of the orders, the same in all processes; None is that of the run, which
            ``SeekingTrainLoop`` hands on, else 0.
    """

    def __init__(
        self, dataset: Sized, shuffle: bool = True, seed: int | None = None
    ) -> None:
        self.rank, self.world_size = get_dist_info()
        self.size = len(dataset)
        self.shuffle = shuffle
        self.seed = seed
        self.first = 0

    def seek(self, num_samples: int) -> None:
        """Let the next iterator start after ``num_samples`` samples per process."""
        self.first = num_samples

    def __iter__(self) -> Iterator[tuple[int, int]]:
        draw = self.first * self.world_size + self.rank
        order, order_pass = None, None
        while True:
            current, place = divmod(draw, self.size)
            if current != order_pass:
                order, order_pass = self._order(current), current
            yield int(order[place]), draw
            draw += self.world_size

    def _order(self, number: int) -> torch.Tensor:
        if not self.shuffle:
            return torch.arange(self.size)
        generator = torch.Generator()
        generator.manual_seed((self.seed or 0) * 1_000_003 + number)
        return torch.randperm(self.size, generator=generator)

    def __len__(self) -> int:
        """Length of one pass."""
        return self.size
