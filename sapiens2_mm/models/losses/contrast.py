"""Self-distillation between views of an image."""

import torch
from torch import Tensor, nn

from sapiens2_mm.registry import MODELS


def view_pairs(num_student: int, num_teacher: int) -> list[tuple[int, int]]:
    """All (student view, teacher view) pairs but a view with itself.

    The teacher's views are the first of the student's: 6 and 2 give 10 pairs.
    """
    return [(i, j) for i in range(num_student) for j in range(num_teacher) if i != j]


def cross_view_entropy(
    student_logits: Tensor, targets: Tensor, temperature: float
) -> Tensor:
    """Cross-entropy of the student, averaged over view pairs and the batch.

    Args:
        student_logits: (V, B, K).
        targets: (T, B, K) teacher probabilities of the first T views.
        temperature: of the student.

    Returns:
        Scalar float32.
    """
    log_probs = torch.log_softmax(student_logits.float() / temperature, dim=-1)
    # (T, V): cross-entropy of each pair, mean over the batch
    entropy = -torch.einsum('tbk,vbk->tv', targets, log_probs) / targets.shape[1]
    pairs = view_pairs(len(student_logits), len(targets))
    return sum(entropy[j, i] for i, j in pairs) / len(pairs)


def target_entropies(targets: Tensor) -> tuple[Tensor, Tensor]:
    """Mean entropy of the targets, and entropy of the mean target.

    The second minus the first is the mutual information of image and prototype: 0 if
    all images get the same target, at most the logarithm of the number of images.

    Args:
        targets: (T, B, K) probabilities.

    Returns:
        Two scalars, nats.
    """
    entr = torch.special.entr
    return entr(targets).sum(-1).mean(), entr(targets.mean((0, 1))).sum()


def linear_ramp(step: int, start: float, end: float, num_steps: int) -> float:
    """From ``start`` at step 0 to ``end`` at ``num_steps`` and later."""
    if step >= num_steps:
        return end
    return start + (end - start) * step / num_steps


@MODELS.register_module()
class ViewContrastLoss(nn.Module):
    """``cross_view_entropy`` with the temperatures of the paper.

    Args:
        student_temperature: divides the student's logits; positive.
        teacher_temperature: (first, last) for the teacher; grows linearly.
        warmup_iters: optimizer steps from the first to the last.
        loss_weight: factor on the result.

    Source: Sapiens2 (arXiv 2604.21681) section 3.2 and A.1.1; that the teacher sees
        global views only is the scheme of DINO (arXiv 2104.14294), which it names.
    """

    def __init__(
        self,
        student_temperature: float = 0.1,
        teacher_temperature: tuple[float, float] = (0.065, 0.07),
        warmup_iters: int = 1000,
        loss_weight: float = 0.4,
    ) -> None:
        super().__init__()
        temperatures = (student_temperature, *teacher_temperature)
        if min(temperatures) <= 0:
            raise ValueError(f'temperatures must be positive, got {temperatures}')
        self.student_temperature = student_temperature
        self.teacher_temperature = tuple(teacher_temperature)
        self.warmup_iters = warmup_iters
        self.loss_weight = loss_weight

    def teacher_temperature_at(self, iteration: int) -> float:
        """Teacher temperature after ``iteration`` optimizer steps."""
        return linear_ramp(iteration, *self.teacher_temperature, self.warmup_iters)

    def forward(self, student_logits: Tensor, targets: Tensor) -> Tensor:
        """Weighted loss; arguments as for :func:`cross_view_entropy`."""
        with torch.autocast(student_logits.device.type, enabled=False):
            return self.loss_weight * cross_view_entropy(
                student_logits, targets, self.student_temperature
            )
