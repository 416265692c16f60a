"""Head that predicts surface normals."""

from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_head import DenseHead


@MODELS.register_module(name=['NormalHead', 'ProbeNormalHead'])
class NormalHead(DenseHead):
    """Surface normals in the camera frame (X right, Y down, Z forward).

    ``predict`` returns unit vectors. It normalizes, removes the letterbox, resizes,
    and normalizes again; the reference leaves out the last step, so its vectors are
    shorter than 1 at edges. A vector of length 0 stays 0.

    Source: Sapiens2 official repository, ``NormalHead``.
    """

    field = 'normal'
    channels = 3

    def activation(self, values: Tensor) -> Tensor:
        # F.normalize to rounding, in a tenth of its time on the CPU; not for training,
        # the root has no gradient at 0
        return values / values.square().sum(1, keepdim=True).sqrt().clamp_min(1e-8)
