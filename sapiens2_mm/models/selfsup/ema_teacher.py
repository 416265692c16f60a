"""Teacher: a slowly moving copy of the student."""

import copy
import math

import torch
from torch import Tensor, nn


class EMATeacher(nn.Module):
    """Copies of the student's backbone and projection head.

    Never trained, always in evaluation mode. Parameters follow the student by
    ``teacher = momentum * teacher + (1 - momentum) * student``, buffers are copied.
    Keep it in float32: one step moves a weight by less than bfloat16 resolves.

    Args:
        backbone: the student's.
        head: the student's.
        momentum: weight of the old teacher.
        momentum_iters: optimizer steps in which it grows to 1 along half a cosine;
            None keeps it.

    Raises:
        ValueError: if ``momentum`` is not in [0, 1].

    Source: Sapiens2 (arXiv 2604.21681) section 3.2 and A.1.1; growth, of which it says
        nothing, after BYOL (arXiv 2006.07733).
    """

    def __init__(
        self,
        backbone: nn.Module,
        head: nn.Module,
        momentum: float = 0.992,
        momentum_iters: int | None = None,
    ) -> None:
        super().__init__()
        if not 0 <= momentum <= 1:
            raise ValueError(f'EMATeacher: momentum must be in [0, 1], got {momentum}')
        self.momentum = momentum
        self.momentum_iters = momentum_iters
        self.backbone = copy.deepcopy(backbone)
        self.head = copy.deepcopy(head)
        self.requires_grad_(False)
        self.train(False)

    def train(self, mode: bool = True) -> 'EMATeacher':
        """Stay in evaluation mode whatever is asked."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tensor:
        """(B, 3, H, W) whole images to (B, K) float32 logits."""
        tokens, rope, _ = self.backbone.embed(images)
        return self.head(self.backbone.encode(tokens, rope)[-1][:, 0])

    def momentum_at(self, iteration: int | Tensor) -> float:
        """Weight of the old teacher after ``iteration`` optimizer steps."""
        if self.momentum_iters is None:
            return self.momentum
        done = min(int(iteration) / self.momentum_iters, 1)
        return 1 - (1 - self.momentum) * (1 + math.cos(math.pi * done)) / 2

    @torch.no_grad()
    def update(
        self, backbone: nn.Module, head: nn.Module, iteration: int | Tensor = 0
    ) -> None:
        """Move one step towards the student, after ``iteration`` earlier ones."""
        weight = 1 - self.momentum_at(iteration)
        for own, other in ((self.backbone, backbone), (self.head, head)):
            # lerp leaves a weight that equals the student's, a frozen one say, as it is
            torch._foreach_lerp_(
                list(own.parameters()), list(other.parameters()), weight
            )
            _copy_buffers(own, other)

    @torch.no_grad()
    def copy_from(self, backbone: nn.Module, head: nn.Module) -> None:
        """Become the student, whatever the own weights are; they may be unset."""
        for own, other in ((self.backbone, backbone), (self.head, head)):
            torch._foreach_copy_(list(own.parameters()), list(other.parameters()))
            _copy_buffers(own, other)


def _copy_buffers(own: nn.Module, other: nn.Module) -> None:
    for own_buffer, buffer in zip(own.buffers(), other.buffers(), strict=True):
        own_buffer.copy_(buffer)
