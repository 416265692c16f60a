"""Images to network input."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.model import BaseDataPreprocessor

from sapiens2_mm.registry import MODELS


@MODELS.register_module()
class DenseDataPreprocessor(BaseDataPreprocessor):
    """Stack, swap the channels, normalize.

    Mean and deviation are plain numbers: casting the model to bf16 does not round them
    (the reference trains with 123.5 in place of 123.675 that way).

    Args:
        mean: of each channel, after the swap.
        std: of each channel, after the swap.
        bgr_to_rgb: swap the first and the last channel.
        non_blocking: copy to the device without waiting.

    Raises:
        ValueError: if the images of a batch differ in size. They are never padded
            here: instance norm would see the padding.
    """

    def __init__(
        self,
        mean: Sequence[float] = (123.675, 116.28, 103.53),
        std: Sequence[float] = (58.395, 57.12, 57.375),
        bgr_to_rgb: bool = True,
        non_blocking: bool = False,
    ) -> None:
        super().__init__(non_blocking=non_blocking)
        self.mean = tuple(mean)
        self.std = tuple(std)
        self.bgr_to_rgb = bgr_to_rgb

    def forward(self, data: dict[str, Any], training: bool = False) -> dict[str, Any]:
        """Prepare a batch.

        Args:
            data: ``inputs``: (3, H, W) uint8 images, a list or a stacked tensor;
                ``data_samples``: list, or absent.
            training: not used; the same happens in both modes.

        Returns:
            ``inputs`` (B, 3, H, W) float32 and ``data_samples``, on the device.
        """
        data = self.cast_data(data)
        inputs = data['inputs']
        if not isinstance(inputs, torch.Tensor):
            sizes = {tuple(image.shape) for image in inputs}
            if len(sizes) > 1:
                raise ValueError(
                    'DenseDataPreprocessor: the images of a batch must have one size, '
                    f'got {sorted(sizes)}; end the pipeline with sapiens2_mm.Letterbox'
                )
            inputs = torch.stack(list(inputs))
        if self.bgr_to_rgb:
            inputs = inputs.flip(1)
        inputs = inputs.float()
        mean, std = (inputs.new_tensor(v)[:, None, None] for v in (self.mean, self.std))
        return {
            'inputs': (inputs - mean) / std,
            'data_samples': data.get('data_samples'),
        }
