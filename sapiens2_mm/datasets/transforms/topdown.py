"""Crops of a person (UDP) and of half a body, and mmpose's changes of color."""

import cv2
import numpy as np
from mmpose.datasets.transforms import (
    PhotometricDistortion,
    RandomHalfBody,
    TopdownAffine,
)
from mmpose.structures.bbox import get_udp_warp_matrix

from sapiens2_mm.registry import TRANSFORMS

from .base import Transform, check_choice
from .photometric import lookup_values
from .resize import ENLARGE


@TRANSFORMS.register_module()
class Sapiens2RandomHalfBody(Transform, RandomHalfBody):
    """mmpose's own, whose defaults are the official ones.

    The upper and lower body come from the ``type`` of each keypoint in the metainfo.
    """


@TRANSFORMS.register_module()
class PosePhotometricDistortion(Transform, PhotometricDistortion):
    """mmpose's own by lookups of 256 values: equal pixels, uint8 images."""

    at_inference = 'refuse'

    def _convert(
        self, img: np.ndarray, alpha: float = 1, beta: float = 0
    ) -> np.ndarray:
        return lookup_values(img, np.arange(256, dtype=np.float32) * alpha + beta)


@TRANSFORMS.register_module()
class Sapiens2TopdownAffine(Transform, TopdownAffine):
    """mmpose's ``TopdownAffine`` with UDP, bicubic where the crop is enlarged.

    Differs from mmpose's in two points: enlarged crops are sampled bicubically, and
    keypoints that fall outside the crop are set to (0, 0) and made invisible, so that
    they train nothing. Without keypoints (inference) it only crops. The
    ``joint_weights`` of the metainfo become weights in the loss.

    Args:
        input_size: (width, height) of the crop, mmpose's order.
        enlarge: interpolation of a crop that is enlarged, ``'bicubic'`` or, as in the
            first Sapiens, ``'bilinear'``.

    Raises:
        ValueError: for another interpolation.

    Source: official pose transforms.
    """

    def __init__(self, input_size: tuple[int, int], enlarge: str = 'bicubic') -> None:
        super().__init__(input_size=input_size, use_udp=True)
        check_choice('Sapiens2TopdownAffine: enlarge', enlarge, list(ENLARGE))
        self.enlarge = enlarge

    def transform(self, results: dict) -> dict:
        """Needs ``img``, ``bbox_center``, ``bbox_scale``; uses ``bbox_rotation``,
        ``keypoints`` and ``keypoints_visible`` where present.

        Adds ``input_size``, ``input_center``, ``input_scale`` and, if there are
        keypoints, ``transformed_keypoints`` (1, K, 2) in crop pixels and
        ``keypoint_weights`` (1, K), visibility times ``dataset_keypoint_weights``.
        """
        width, height = self.input_size
        # A half body of points in one line or spot has no extent of its own.
        scale = self._fix_aspect_ratio(
            np.maximum(results['bbox_scale'], 1.0), aspect_ratio=width / height
        )
        if len(scale) != 1:
            raise ValueError(
                f'{type(self).__name__}: expected one box per sample, got '
                f"{len(scale)}; set the dataset's data_mode='topdown'"
            )
        center = results['bbox_center'][0]
        rotation = results['bbox_rotation'][0] if 'bbox_rotation' in results else 0.0
        warp = get_udp_warp_matrix(center, scale[0], rotation, (width, height))
        zoom = (np.array(self.input_size) - 1) / scale[0]
        interpolation = cv2.INTER_LINEAR if zoom.min() < 1 else ENLARGE[self.enlarge]
        results['img'] = cv2.warpAffine(
            results['img'], warp, (width, height), flags=interpolation
        )
        if results.get('keypoints') is not None:
            keypoints = cv2.transform(results['keypoints'][..., :2], warp)
            inside = ((keypoints >= 0) & (keypoints < self.input_size)).all(axis=-1)
            results['transformed_keypoints'] = keypoints * inside[..., None]
            visible = results['keypoints_visible']
            # mmpose's KeypointConverter adds a weight: (1, K, 2).
            visible = visible * (inside[..., None] if visible.ndim == 3 else inside)
            results['keypoints_visible'] = visible
            weights = results.get('dataset_keypoint_weights', np.ones(1))
            if np.ptp(weights) == 0:  # of any number: the converter changes it
                weights = weights[:1]
            visible = visible[..., 0] if visible.ndim == 3 else visible
            if len(weights) not in (1, visible.shape[1]):
                raise ValueError(
                    f'{len(weights)} joint_weights do not fit the {visible.shape[1]} '
                    'keypoints of KeypointConverter; give joint_weights one value'
                )
            results['keypoint_weights'] = np.float32(visible * weights)
        results['bbox_scale'] = scale
        results['input_size'] = (width, height)
        results['input_center'] = center
        results['input_scale'] = scale[0]
        return results

    def __repr__(self) -> str:
        options = f'input_size={self.input_size}, enlarge={self.enlarge!r}'
        return f'{type(self).__name__}({options})'
