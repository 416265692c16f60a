"""Overlays of body parts with a legend [mmseg]."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mmengine
import numpy as np
import torch
from mmseg.visualization import SegLocalVisualizer
from PIL import Image, ImageDraw, ImageFont

from sapiens2_mm.registry import VISUALIZERS

from .label_overlay import overlay_labels
from .last_picture import LastPicture


@VISUALIZERS.register_module()
class Sapiens2SegVisualizer(LastPicture, SegLocalVisualizer):
    """Draws label maps over their images, with a legend of the classes that occur.

    Annotation left, prediction right, legend at the far right: color, name and share
    of the pixels (of the prediction, if drawn). The background is not tinted.

    Args:
        name: of the instance, as mmengine's visualizers have it.
        alpha: weight of the colors, 0 to 1.
        background_id: class that is not tinted; None tints all.
        draw_legend: whether to add the legend.
        **kwargs: arguments of mmseg's ``SegLocalVisualizer``.
    """

    def __init__(
        self,
        name: str = 'visualizer',
        *,
        alpha: float = 0.6,
        background_id: int | None = 0,
        draw_legend: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, alpha=alpha, **kwargs)
        self.background_id = background_id
        self.draw_legend = draw_legend

    def set_dataset_meta(
        self,
        classes: Sequence[str] | None = None,
        palette: Sequence[Sequence[int]] | None = None,
        dataset_name: str | None = None,
    ) -> None:
        """Set the classes and colors, or mmseg's of a data set that it knows.

        Without arguments nothing changes; mmseg takes Cityscapes.
        """
        if classes or palette or dataset_name:
            super().set_dataset_meta(classes, palette, dataset_name)

    def add_datasample(
        self,
        name: str,
        image: np.ndarray,
        data_sample: Any = None,
        draw_gt: bool = True,
        draw_pred: bool = True,
        show: bool = False,
        wait_time: float = 0,
        out_file: str | None = None,
        step: int = 0,
        with_labels: bool | None = None,
    ) -> np.ndarray:
        """Draw one image.

        Args:
            name: of the picture, for the backends.
            image: (H, W, 3) uint8 RGB.
            data_sample: with ``gt_sem_seg`` and ``pred_sem_seg`` of the image's size.
            draw_gt: draw the annotation, if there is one.
            draw_pred: draw the prediction, if there is one.
            show: open a window.
            wait_time: seconds the window stays; 0 waits for a key.
            out_file: write here instead of to the backends.
            step: of the backends.
            with_labels: add the legend; None as ``draw_legend`` says.

        Returns:
            The picture, RGB uint8.

        Raises:
            ValueError: without the classes and colors of the dataset, or if label map
                and image differ in size.
        """
        maps = [
            _label_map(data_sample, key)
            for key, wanted in (('gt_sem_seg', draw_gt), ('pred_sem_seg', draw_pred))
            if wanted and data_sample is not None and key in data_sample
        ]
        panels = [image]
        if maps:
            classes, palette = self._classes_and_palette()
            panels = [
                overlay_labels(image, m, palette, self.alpha, self.background_id)
                for m in maps
            ]
            if self.draw_legend if with_labels is None else with_labels:
                panels.append(_legend(maps, classes, palette, image.shape[0]))
        picture = np.concatenate(panels, axis=1)
        self.keep_image(picture)
        if show:
            self.show(picture, win_name=name, wait_time=wait_time)
        if out_file is not None:
            mmengine.mkdir_or_exist(Path(out_file).parent)
            Image.fromarray(picture).save(out_file)
        else:
            self.add_image(name, picture, step)
        return picture

    def _classes_and_palette(self) -> tuple[Sequence[str], Sequence[Sequence[int]]]:
        meta = self.dataset_meta or {}
        classes, palette = meta.get('classes'), meta.get('palette')
        if not classes or not palette or len(classes) != len(palette):
            raise ValueError(
                'dataset_meta needs classes and one RGB color each in palette, got '
                f'{len(classes or [])} classes and {len(palette or [])} colors'
            )
        return classes, palette


def _label_map(data_sample: Any, key: str) -> np.ndarray:
    data = data_sample.get(key).data
    if isinstance(data, torch.Tensor):
        data = data.cpu().numpy()
    return data[0] if data.ndim == 3 else data


def _legend(
    maps: Sequence[np.ndarray],
    classes: Sequence[str],
    palette: Sequence[Sequence[int]],
    height: int,
) -> np.ndarray:
    """(height, W, 3): swatch, name and share of each class that occurs."""
    num_classes = len(classes)
    counts = [np.bincount(m[m < num_classes], minlength=num_classes) for m in maps]
    present = np.nonzero(np.sum(counts, axis=0))[0]
    shares = 100 * counts[-1] / maps[-1].size
    font_size = max(10, min(round(height / 36), 28))
    line = round(1.4 * font_size)
    rows = max(1, (height - line) // line)
    font = ImageFont.load_default(font_size)
    texts = [f'{classes[index]}  {shares[index]:.1f}%' for index in present]
    widths = [font.getlength(text) for text in texts]
    column = round(2 * line + max(widths, default=0))
    num_columns = max(1, -(-len(present) // rows))
    strip = Image.new('RGB', (column * num_columns, height), 'white')
    draw = ImageDraw.Draw(strip)
    for place, (index, text) in enumerate(zip(present, texts, strict=True)):
        left = column * (place // rows) + line // 2
        top = line // 2 + line * (place % rows)
        box = (left, top, left + font_size, top + font_size)
        draw.rectangle(box, fill=tuple(palette[index]), outline='black')
        draw.text((left + line, top - 0.15 * font_size), text, 'black', font)
    return np.asarray(strip)
