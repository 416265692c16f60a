"""What the pictures of dense regression share."""

from typing import Any

import mmcv
import numpy as np
import torch

from sapiens2_mm.structures import DenseDataSample

from .last_picture import LastPicture

BACKGROUND_GRAY = 100


class DenseVisualizer(LastPicture):
    """Draws image, annotation and prediction side by side.

    A subclass names the field of one map and defines ``colors``, or defines
    ``panels``.

    Args:
        name: of the instance, see mmengine's ``Visualizer``.
        kwargs: see mmengine's ``Visualizer``.
    """

    field: str
    background = BACKGROUND_GRAY  # gray level outside the foreground

    def __init__(self, name: str = 'visualizer', **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)

    def panels(
        self, image: np.ndarray, data_sample: DenseDataSample, kinds: list[str]
    ) -> list[np.ndarray]:
        """Pictures to stand right of the image.

        Args:
            image: (H, W, 3) uint8 RGB.
            data_sample: with maps of the image's size.
            kinds: ``'gt'``, ``'pred'`` or both, in this order.

        Returns:
            (H, any, 3) uint8 RGB arrays.
        """
        mask = foreground(data_sample, image.shape[:2])
        maps = [get_map(data_sample, f'{kind}_{self.field}') for kind in kinds]
        return [
            on_background(self.colors(values), mask, self.background)
            for values in maps
            if values is not None
        ]

    def colors(self, values: np.ndarray) -> np.ndarray:
        """(H, W, C) map to (H, W, 3) uint8 RGB."""
        raise NotImplementedError

    def add_datasample(
        self,
        name: str,
        image: np.ndarray,
        data_sample: DenseDataSample | None = None,
        draw_gt: bool = True,
        draw_pred: bool = True,
        show: bool = False,
        wait_time: float = 0,
        out_file: str | None = None,
        step: int = 0,
    ) -> np.ndarray:
        """Draw a sample.

        Args:
            name: of the picture.
            image: (H, W, 3) uint8 RGB.
            data_sample: what to draw; only the image if None.
            draw_gt: draw its annotation, if it has one of the image's size.
            draw_pred: draw its prediction, if it has one.
            show: in a window.
            wait_time: seconds before the window closes; 0 waits for a key.
            out_file: file to write; the visualizer's backends get the picture if None.
            step: of the run.

        Returns:
            The picture, RGB uint8.
        """
        kinds = [k for k, wanted in (('gt', draw_gt), ('pred', draw_pred)) if wanted]
        parts = [image]
        if data_sample is not None:
            if not _annotation_fits(data_sample, image.shape[:2]):
                kinds = [kind for kind in kinds if kind != 'gt']
            parts += self.panels(image, data_sample.cpu(), kinds)
        picture = np.concatenate(parts, axis=1)
        self.keep_image(picture)
        if show:
            self.show(picture, win_name=name, wait_time=wait_time)
        if out_file is None:
            self.add_image(name, picture, step)
        elif not mmcv.imwrite(picture[..., ::-1], str(out_file)):
            raise OSError(f'{type(self).__name__}: could not write {out_file}')
        return picture


def get_map(data_sample: DenseDataSample, name: str) -> np.ndarray | None:
    """A map of a sample as (H, W, C) array; None if the sample lacks it."""
    if name not in data_sample:
        return None
    values = data_sample.get(name)
    if isinstance(values, torch.Tensor):
        values = (
            values.float().numpy() if values.dtype != torch.bool else values.numpy()
        )
    return values.transpose(1, 2, 0)


def _annotation_fits(data_sample: DenseDataSample, size: tuple[int, int]) -> bool:
    maps = [v for k, v in data_sample.items() if k.startswith('gt_') and v.ndim == 3]
    return all(tuple(values.shape[1:]) == tuple(size) for values in maps)


def foreground(data_sample: DenseDataSample, size: tuple[int, int]) -> np.ndarray:
    """Where to draw: ``pred_mask``, else ``gt_mask``, else everywhere; (H, W) bool."""
    for name in ('pred_mask', 'gt_mask'):
        mask = get_map(data_sample, name)
        if mask is not None and mask.shape[:2] == tuple(size):
            return mask[..., 0] > 0
    return np.ones(size, bool)


def on_background(
    colors: np.ndarray, mask: np.ndarray, background: int = BACKGROUND_GRAY
) -> np.ndarray:
    """``colors`` (H, W, 3) uint8 where ``mask``, else one gray level."""
    return np.where(mask[..., None], colors, np.uint8(background))
