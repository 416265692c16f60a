"""Head that predicts relative depth."""

from torch import Tensor

from sapiens2_mm.registry import MODELS

from .dense_head import DENSE_INIT, DenseHead


@MODELS.register_module()
class DepthHead(DenseHead):
    """Depth of a person relative to itself, 0 nearest and 1 farthest.

    For data that has depth but no camera; with a camera, ``PointmapHead`` gives
    meters. The output has no activation. The decoder is that of the other dense
    heads; the first Sapiens has another one, ``SapiensV1DepthHead``.
    Untrained, it predicts about 0.5 everywhere.

    Source: Sapiens (arXiv 2408.12569), depth task.
    """

    field = 'depth'
    channels = 1
    # The loss has no gradient where the prediction is not positive: half of the pixels,
    # if it starts around 0, and these pull the others after them. So it starts at 0.5.
    default_init = [
        *DENSE_INIT,
        dict(type='Normal', std=0.01, bias=0.5, override=dict(name='conv_depth')),
    ]

    def loss_mask(self, target: Tensor, mask: Tensor) -> Tensor:
        """The nearest pixel, whose target is 0, has no logarithm and is left out."""
        return mask & ~(target <= 1e-6)  # a target that is not finite must show
