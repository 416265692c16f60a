"""Load images, masks, maps, cameras and mattes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cv2
import numpy as np

from sapiens2_mm.registry import TRANSFORMS

from ..io.array_file import read_array
from ..io.image import read_image, to_bgr_uint8
from ..io.label_image import read_label_image
from ..seg.label_map import UNKNOWN, label_lookup
from .annotation_decoding import DECODERS, set_cameras
from .base import Transform, check_choice, get_entry
from .maps import MAPS, as_mask, resize_nearest

OPAQUE = 0.996  # from this alpha on, the image shows nothing but the foreground


class SizeMismatch(ValueError):
    """A file, or what its annotation says of it, is of another size than its image."""


class UnknownLabel(ValueError):
    """A mask holds a value that is neither a class nor ignored."""


# MMSegInferencer looks for the second name in a pipeline and makes it the third.
@TRANSFORMS.register_module(['LoadImage', 'LoadImageFromFile', 'InferencerLoader'])
class LoadImage(Transform):
    """Put an image into the results, from a file or an array.

    Required keys: ``img_path``, or ``img`` (an array as ``to_bgr_uint8`` takes it); a
    path or an array serves in place of the results, as mmseg's inferencer gives them.
    ``annotated_size`` (H, W), if there, must be the size of the picture.
    Set keys: ``img`` (H, W, 3) uint8 BGR, ``img_path`` (None for an array),
    ``img_shape`` and ``ori_shape`` (H, W).

    Args:
        backend_args: of ``mmengine.fileio.get``.

    Raises:
        ValueError: see ``read_image``, ``to_bgr_uint8``; or if the annotation file
            gives the picture another size, so that its points lie elsewhere.
    """

    def __init__(self, backend_args: dict | None = None) -> None:
        self.backend_args = backend_args

    def transform(self, results: dict[str, Any] | str | np.ndarray) -> dict[str, Any]:
        if not isinstance(results, dict):
            key = 'img' if isinstance(results, np.ndarray) else 'img_path'
            results = {key: results}
        if results.get('img') is not None:
            results['img'] = to_bgr_uint8(results['img'])
            results.setdefault('img_path', None)
        else:
            results['img'] = read_image(results['img_path'], self.backend_args)
        results['img_shape'] = results['ori_shape'] = results['img'].shape[:2]
        expected = results.get('annotated_size', results['ori_shape'])
        if tuple(expected) != results['ori_shape']:
            raise SizeMismatch(
                f'{results["img_path"]} has height and width {results["ori_shape"]}, '
                f'its annotation file says {tuple(expected)} of the image with id '
                f'{results.get("img_id")!r}; correct the file (a picture with a '
                'rotation tag has the size that viewers show)'
            )
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(backend_args={self.backend_args})'


# MMSegInferencer takes steps of the second name out of a pipeline.
@TRANSFORMS.register_module(['LoadSegAnnotations', 'LoadAnnotations'])
class LoadSegAnnotations(Transform):
    """Put the class ids of a mask file into the results.

    In training it follows the loading of the image. In evaluation it stands after the
    resize, so that the labels keep their own size.

    Required keys, as ``SegDataset`` sets them: ``seg_map_path`` (None: the sample has
    no mask, nothing is loaded), ``num_classes``, ``label_map``, ``reduce_zero_label``,
    ``ignore_index``, ``seg_fields``.
    Set keys: ``gt_seg_map`` (H, W) uint8, added to ``seg_fields``.

    Args:
        palette: RGB colors, for masks that hold colors; a pixel's value is the index
            of its color.
        backend_args: of ``mmengine.fileio.get``.

    Raises:
        ValueError: if there is no annotation to load (a pipeline for inference), the
            file cannot be read, differs in size from the image, or has a pixel value
            that is neither a class nor ignored; names the file.
    """

    at_inference = 'skip'

    def __init__(
        self,
        palette: Sequence[Sequence[int]] | None = None,
        backend_args: dict | None = None,
    ) -> None:
        self.palette = palette
        self.backend_args = backend_args

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        advice = (
            'remove LoadSegAnnotations from a pipeline for inference (test_pipeline)'
        )
        path = get_entry(results, 'seg_map_path', advice)
        if path is None:
            return results
        values = read_label_image(path, self.palette, self.backend_args)
        size = get_entry(results, 'ori_shape', 'load the image before its labels')
        _check_shape(values, path, size, results)
        lookup = label_lookup(
            results['num_classes'],
            results['label_map'],
            results['reduce_zero_label'],
            results['ignore_index'],
        )
        is_8bit = values.dtype == np.uint8
        labels = cv2.LUT(values, lookup[:256]) if is_8bit else lookup[values]
        if labels.min() == UNKNOWN:
            found = np.unique(values[labels == UNKNOWN], return_counts=True)
            text = ', '.join(f'{v} ({n} px)' for v, n in zip(*found, strict=True))
            raise UnknownLabel(
                f'mask {path}: pixel values {text:.200} are neither one of the '
                f'{results["num_classes"]} classes nor {results["ignore_index"]} '
                '(ignored); map them with label_map (or source) of the dataset'
            )
        results['gt_seg_map'] = labels.astype(np.uint8)
        results['seg_fields'].append('gt_seg_map')
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(palette={self.palette})'


@TRANSFORMS.register_module()
class LoadDenseAnnotations(Transform):
    """Read maps, their mask and the camera of an image.

    A map is a ``.png`` (8 or 16 bits), ``.npy`` or ``.npz`` file (its array of the
    field's name, or its only array). Values by field:

    * ``normal``: float (H, W, 3) in the camera frame, or a PNG of RGB
      ``(n + 1) / 2`` of the full range, all-zero where unknown. Stored with length 1,
      times ``results['normal_signs']``, if there.
    * ``depth``: float (H, W) meters along Z, or integers of 16 bits or more times
      ``results['depth_scale']`` meters.
    * ``albedo``: float (H, W, 3) RGB in [0, 1], or a PNG of the full range.
    * ``mask``: valid where any color channel is above 0, so gray, palette and color
      files serve; alpha is not looked at. Where a sample has no mask file, everything
      is valid.

    Values that are not finite, zero vectors and depths that are not positive leave
    the mask, and so do the excluded parts of a body.

    Required keys: ``img``, and for each field ``<field>_path``; with excluded parts
    ``parts_path``, a map (H, W) of part ids in a size of its own; with camera
    ``camera_matrix`` (3x3) or ``intrinsics_path`` (a text file of 3x3 numbers).
    Set keys: ``gt_<field>`` float32, ``gt_mask`` (H, W) bool; with camera
    ``intrinsics``, ``map_intrinsics``, ``ori_intrinsics`` (3, 3) and, if the sample has
    ``extrinsics_path``, ``extrinsics`` (4, 4), float64.

    Args:
        fields: any of normal, depth, albedo.
        with_camera: read the camera.
        excluded_parts: ids of the part map that leave the mask. Face, hair, lips,
            teeth and tongue are 2, 3, 23 to 27 of the 28 classes of Sapiens, and 3,
            4, 24 to 28 of the 29 of Sapiens2.

    Raises:
        ValueError: for a file that cannot be read or holds another shape, type or
            range; names the file, what it holds and what was expected.
    """

    at_inference = 'skip'

    def __init__(
        self,
        fields: Sequence[str],
        with_camera: bool = False,
        excluded_parts: Sequence[int] = (),
    ) -> None:
        for field in fields:
            check_choice('LoadDenseAnnotations: field', field, list(DECODERS))
        self.fields = tuple(fields)
        self.with_camera = with_camera
        self.excluded_parts = tuple(excluded_parts)

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        for part in self.parts():
            part(results)
        return results

    def parts(self) -> list[Callable[[dict[str, Any]], None]]:
        """What ``transform`` does, file by file: a report names every faulty one."""
        parts = [set_cameras] if self.with_camera else []
        parts.append(self._load_mask)
        if self.excluded_parts:
            parts.append(self._exclude_parts)
        return parts + [partial(self._load_field, field) for field in self.fields]

    def _load_mask(self, results: dict[str, Any]) -> None:
        mask = results['gt_mask'] = np.ones(results['ori_shape'], bool)
        if results.get('mask_path') is not None:
            values = read_array(results['mask_path'], 'mask')
            _check_shape(values, results['mask_path'], mask.shape, results, (1, 3, 4))
            mask[:] = (values.reshape(*mask.shape, -1)[..., :3] > 0).any(2)

    def _exclude_parts(self, results: dict[str, Any]) -> None:
        results['gt_mask'] &= ~np.isin(_load_parts(results), self.excluded_parts)

    def _load_field(self, field: str, results: dict[str, Any]) -> None:
        path = get_entry(
            results, f'{field}_path', f'give the dataset fields=[{field!r}]'
        )
        values = read_array(path, field)
        channels = MAPS[f'gt_{field}'].channels
        _check_shape(values, path, results['gt_mask'].shape, results, (channels,))
        values, valid = DECODERS[field](values, path, results)
        if not valid.all():
            values = cv2.copyTo(values, as_mask(valid))
        results['gt_mask'] &= valid
        results[f'gt_{field}'] = values

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(fields={self.fields}, '
            f'with_camera={self.with_camera}, excluded_parts={self.excluded_parts})'
        )


@TRANSFORMS.register_module()
class LoadMatte(Transform):
    """Read ``alpha_path``: a single channel, or RGBA with straight colors.

    Float files hold values in [0, 1]. With RGBA the foreground is known everywhere.
    With alpha alone it is known where the matte is opaque (the image's own color) and
    where it is 0 (black).

    Required keys: ``img``, ``alpha_path`` (8 or 16 bits).
    Set keys: ``gt_alpha`` (H, W), ``gt_foreground`` (H, W, 3) RGB multiplied by alpha,
    both float32 in [0, 1], and ``gt_foreground_mask`` (H, W) bool.

    Args:
        binary: values above 0 are opaque, as for label maps.

    Raises:
        ValueError: if the matte is not there, cannot be read, has no alpha, another
            size or another range.

    Source: Sapiens2 official repository, matting task.
    """

    at_inference = 'skip'

    def __init__(self, binary: bool = False) -> None:
        self.binary = binary

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        path = get_entry(results, 'alpha_path', 'use sapiens2_mm.MattingListDataset')
        values = read_array(path, 'alpha')
        size = results['img'].shape[:2]
        _check_shape(values, path, size, results, (1, 4))
        values = values.reshape(*size, -1)
        if self.binary:
            values = values > 0
        elif np.issubdtype(values.dtype, np.unsignedinteger):
            values = values / np.float32(np.iinfo(values.dtype).max)
        values = values.astype(np.float32)
        if not (values.min() >= 0 and values.max() <= 1):
            raise ValueError(
                f'{path}: expected 8 or 16 bits, or floats in [0, 1], got values from '
                f'{values.min():g} to {values.max():g}'
            )
        alpha = values[..., -1]
        if values.shape[2] == 4:
            foreground = values[..., :3] * alpha[..., None]
            known = np.ones(size, bool)
        else:
            opaque = alpha >= OPAQUE
            bgr = cv2.copyTo(results['img'], as_mask(opaque))  # black elsewhere
            foreground = bgr[..., ::-1].astype(np.float32) / 255
            known = opaque | (alpha == 0)
        results['gt_alpha'] = np.ascontiguousarray(alpha)
        results['gt_foreground'] = foreground
        results['gt_foreground_mask'] = known
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(binary={self.binary})'


def _check_shape(
    values: np.ndarray,
    path: str,
    size: tuple[int, int],
    results: dict[str, Any],
    channels: Sequence[int] = (1,),
) -> None:
    """Raise unless a file is of its image's size and one of the channel numbers."""
    found = values.shape[2] if values.ndim == 3 else 1
    if values.ndim not in (2, 3) or values.shape[:2] != size or found not in channels:
        raise SizeMismatch(
            f'{path}: expected size {size} like its image {results.get("img_path")} '
            f'and {" or ".join(map(str, channels))} channels, got {values.shape}'
        )


def _load_parts(results: dict[str, Any]) -> np.ndarray:
    path = get_entry(results, 'parts_path', 'give the dataset with_parts=True')
    parts = read_array(path, 'parts')
    if parts.ndim != 2 or not np.issubdtype(parts.dtype, np.integer):
        raise ValueError(
            f'{path}: expected part ids, integers of shape (H, W), got '
            f'{parts.dtype} of shape {parts.shape}'
        )
    return resize_nearest(parts, results['ori_shape'])
