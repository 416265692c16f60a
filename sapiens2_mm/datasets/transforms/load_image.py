"""Put an image into the results."""

from typing import Any

from mmcv.transforms import BaseTransform

from sapiens2_mm.registry import TRANSFORMS

from ..io.image import read_image, to_bgr_uint8


@TRANSFORMS.register_module()
class LoadImage(BaseTransform):
    """Put an image into the results, from a file or an array.

    Required keys: ``img_path``, or ``img`` (an array as ``to_bgr_uint8`` takes it).
    Set keys: ``img`` (H, W, 3) uint8 BGR, ``img_path`` (None for an array),
    ``img_shape`` and ``ori_shape`` (H, W).

    Args:
        backend_args: of ``mmengine.fileio.get``.

    Raises:
        ValueError: see ``read_image``, ``to_bgr_uint8``.
    """

    def __init__(self, backend_args: dict | None = None) -> None:
        self.backend_args = backend_args

    def transform(self, results: dict[str, Any]) -> dict[str, Any]:
        if results.get('img') is not None:
            results['img'] = to_bgr_uint8(results['img'])
            results.setdefault('img_path', None)
        else:
            results['img'] = read_image(results['img_path'], self.backend_args)
        results['img_shape'] = results['ori_shape'] = results['img'].shape[:2]
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(backend_args={self.backend_args})'
