"""Encoder-decoder segmentor that predicts in little memory [mmseg]."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.config import ConfigDict
from mmengine.structures import PixelData
from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from mmseg.models.segmentors import EncoderDecoder
from mmseg.structures import SegDataSample
from torch import Tensor

from sapiens2_mm.registry import MODELS

from .resize_argmax import resize_and_argmax


@MODELS.register_module()
class Sapiens2Segmentor(EncoderDecoder):
    """mmseg's ``EncoderDecoder``, without logits at the size of the picture.

    Label maps equal those of ``EncoderDecoder``. Logits are only kept on request:
    ``test_cfg=dict(return_logits=True)`` adds ``seg_logits`` (float32, original size)
    to every result, as test-time augmentation needs it.

    In slide mode, windows are averaged row by row of windows, and finished rows are
    turned into labels at once, if the network sees the picture at its original size.
    Any other picture is averaged as a whole, in place.

    Sides that do not fit the stride of the backbone are padded with 0, the mean color,
    to the right and below, and the logits are cut to the sides that were there.

    Args:
        test_cfg: ``mode`` ``'whole'`` (default) or ``'slide'`` with ``crop_size`` and
            ``stride``, both (height, width); ``return_logits``.
        *args, **kwargs: arguments of ``EncoderDecoder``.

    Raises:
        ValueError: for another mode, or slide mode without sensible sizes.
    """

    def __init__(self, *args: Any, test_cfg: dict | None = None, **kwargs: Any) -> None:
        test_cfg = ConfigDict({'mode': 'whole', **(test_cfg or {})})
        sides = [test_cfg.get(key) for key in ('stride', 'crop_size')]
        slides = (
            test_cfg['mode'] == 'slide'
            and all(isinstance(x, list | tuple) and len(x) == 2 for x in sides)
            and all(0 < stride <= crop for stride, crop in zip(*sides, strict=True))
        )
        if test_cfg['mode'] != 'whole' and not slides:
            raise ValueError(
                "Sapiens2Segmentor: test_cfg must have mode 'whole', or 'slide' with "
                'crop_size and stride (height, width), 0 < stride <= crop_size, got '
                f'{test_cfg}'
            )
        super().__init__(*args, test_cfg=test_cfg, **kwargs)

    def test_step(self, data: dict[str, Any]) -> list[SegDataSample]:
        """Results of a batch; pictures of different sizes go one after the other."""
        if len({image.shape for image in data['inputs']}) < 2:
            return super().test_step(data)
        results = []
        for index in range(len(data['inputs'])):
            part = {key: values[index : index + 1] for key, values in data.items()}
            results += super().test_step(part)
        return results

    val_step = test_step

    def predict(
        self, inputs: Tensor, data_samples: list[SegDataSample] | None = None
    ) -> list[SegDataSample]:
        """Label maps, each of the original size of its own image.

        Args:
            inputs: (B, 3, H, W) as the data preprocessor makes them.
            data_samples: one per image; without them the results have the size of
                the input.

        Returns:
            The data samples with ``pred_sem_seg`` (1, h, w) int64 added.
        """
        if data_samples is None:
            size = tuple(inputs.shape[2:])
            meta = dict(ori_shape=size, img_shape=size, pad_shape=size)
            data_samples = [SegDataSample(metainfo=meta) for _ in inputs]
        metas = [data_sample.metainfo for data_sample in data_samples]
        if self.test_cfg['mode'] == 'whole' and self._enlarges_planes():
            logits = self.decode_head(self.extract_feat(self._padded(inputs)))
            return self._label(logits, data_samples, tuple(inputs.shape[2:]))
        if self.test_cfg['mode'] == 'whole':
            return self.postprocess_result(
                self.encode_decode(inputs, metas), data_samples
            )
        if not self._keeps_network_size(inputs, metas):
            return self.postprocess_result(
                self.slide_inference(inputs, metas), data_samples
            )
        rows = [band.argmax(1, keepdim=True) for band in self._slide_bands(inputs)]
        for labels, data_sample in zip(torch.cat(rows, 2), data_samples, strict=True):
            data_sample.pred_sem_seg = PixelData(data=labels)
        return data_samples

    def encode_decode(self, inputs: Tensor, batch_img_metas: list[dict]) -> Tensor:
        """Logits (B, C, H, W) at the size of the input, whatever its sides are."""
        padded = self._padded(inputs)
        if padded is inputs:
            return super().encode_decode(inputs, batch_img_metas)
        logits = super().encode_decode(padded, [dict(img_shape=padded.shape[2:])])
        return logits[..., : inputs.shape[2], : inputs.shape[3]]

    def postprocess_result(
        self, seg_logits: Tensor, data_samples: list[SegDataSample]
    ) -> list[SegDataSample]:
        """Results from (B, C, H, W) logits at the size of the network's input."""
        return self._label(seg_logits, data_samples)

    def _label(
        self,
        seg_logits: Tensor,
        data_samples: list[SegDataSample],
        network_size: tuple[int, int] | None = None,
    ) -> list[SegDataSample]:
        """Results from logits; those of another size first take the network's."""
        for logits, data_sample in zip(seg_logits, data_samples, strict=True):
            meta = data_sample.metainfo
            undo = partial(self._undo, meta=meta, network_size=network_size)
            size = tuple(meta['ori_shape'][:2])
            if self.test_cfg.get('return_logits', False):
                logits = F.interpolate(
                    undo(logits)[None].float(),
                    size,
                    mode='bilinear',
                    align_corners=self.align_corners,
                )[0]
                data_sample.seg_logits = PixelData(data=logits)
                labels = logits.argmax(0)
            else:
                labels = resize_and_argmax(
                    logits, size, self.align_corners, prepare=undo
                )
            data_sample.pred_sem_seg = PixelData(data=labels[None])
        return data_samples

    def _undo(
        self, planes: Tensor, meta: dict, network_size: tuple[int, int] | None
    ) -> Tensor:
        """Some planes (c, H, W) of logits without padding and flip of the pipeline."""
        if network_size is not None:
            planes = self._enlarged(planes[None], network_size)[0]
        left, right, top, bottom = _padding(meta)
        height, width = planes.shape[1:]
        planes = planes[:, top : height - bottom, left : width - right]
        if meta.get('flip'):
            planes = planes.flip(-1 if meta['flip_direction'] == 'horizontal' else -2)
        return planes

    def _enlarges_planes(self) -> bool:
        """Whether the head's logits are only resized, so that planes go one by one."""
        own = getattr(self.encode_decode, '__func__', None)
        return (
            own is Sapiens2Segmentor.encode_decode
            and type(self.decode_head).predict is BaseDecodeHead.predict
        )

    def _enlarged(self, planes: Tensor, size: Sequence[int]) -> Tensor:
        """Planes (B, c, h, w) of the head's logits at the size of its input."""
        meta = dict(img_shape=torch.Size(self._fitting(size)))
        planes = self.decode_head.predict_by_feat(planes, [meta])
        return planes[..., : size[0], : size[1]]

    def _add_logits(self, total: Tensor, inputs: Tensor) -> None:
        """Add the logits of (B, 3, H, W) to (B, C, H, W), one class after the other."""
        if not self._enlarges_planes():
            total += self.encode_decode(inputs, [dict(img_shape=inputs.shape[2:])])
            return
        logits = self.decode_head(self.extract_feat(self._padded(inputs)))
        for sums, plane in zip(total.split(1, 1), logits.split(1, 1), strict=True):
            sums += self._enlarged(plane, inputs.shape[2:])

    def _fitting(self, size: Sequence[int]) -> list[int]:
        """Sides rounded up to multiples of the backbone's stride."""
        stride = getattr(self.backbone, 'stride', 1)
        return [-(-side // stride) * stride for side in size]

    def _padded(self, inputs: Tensor) -> Tensor:
        (height, width), size = inputs.shape[2:], self._fitting(inputs.shape[2:])
        if size == [height, width]:
            return inputs
        return F.pad(inputs, (0, size[1] - width, 0, size[0] - height))

    def slide_inference(self, inputs: Tensor, batch_img_metas: list[dict]) -> Tensor:
        """Averaged window logits (B, C, H, W) at the size of the input."""
        bands = list(self._slide_bands(inputs, whole=True))
        return bands[0]

    def _keeps_network_size(self, inputs: Tensor, metas: list[dict]) -> bool:
        """Whether window logits become labels without any further change."""
        return not self.test_cfg.get('return_logits', False) and all(
            tuple(meta['ori_shape'][:2]) == tuple(inputs.shape[2:])
            and not meta.get('flip')
            and not any(_padding(meta))
            for meta in metas
        )

    def _slide_bands(self, inputs: Tensor, whole: bool = False) -> Iterator[Tensor]:
        """Average the logits of overlapping windows.

        Args:
            inputs: (B, 3, H, W).
            whole: yield one band of all rows instead of each band once it is done.

        Yields:
            (B, C, rows, W) float32; the bands follow each other from top to bottom. A
            band is only valid until the next one is asked for.
        """
        batch, _, height, width = inputs.shape
        crop_h, crop_w = self.test_cfg['crop_size']
        crop_h, crop_w = min(crop_h, height), min(crop_w, width)
        stride_h, stride_w = self.test_cfg['stride']
        tops = _window_starts(height, crop_h, stride_h)
        rows = height if whole else crop_h
        total = inputs.new_zeros(batch, self.out_channels, rows, width).float()
        count = total.new_zeros(rows, width)
        base = 0  # row of the picture at which the buffers begin
        for top, next_top in zip(tops, [*tops[1:], height], strict=True):
            for left in _window_starts(width, crop_w, stride_w):
                window = inputs[:, :, top : top + crop_h, left : left + crop_w]
                rows_here = slice(top - base, top - base + crop_h)
                cols_here = slice(left, left + crop_w)
                self._add_logits(total[:, :, rows_here, cols_here], window)
                count[rows_here, cols_here] += 1
            if whole:
                continue
            done = next_top - base
            yield total[:, :, :done].div_(count[:done])
            for buffer in (total, count):
                kept = buffer[..., done:, :].clone()
                buffer.zero_()
                buffer[..., : rows - done, :] = kept
            base = next_top
        if whole:
            yield total.div_(count)


def _window_starts(size: int, crop: int, stride: int) -> list[int]:
    """First pixels of windows that cover ``size``; the last one ends at the border."""
    number = -(-(size - crop) // stride) + 1
    return [min(index * stride, size - crop) for index in range(number)]


def _padding(meta: dict) -> Sequence[int]:
    """(left, right, top, bottom) pixels that were added to the picture."""
    return meta.get('img_padding_size', meta.get('padding_size', (0, 0, 0, 0)))
