"""The 308 keypoints of a posed person: positions and visibility."""

from __future__ import annotations

import json

import numpy as np
from scipy import sparse

from .body import PosedBody
from .classes import Layer
from .keypoint_names import TABLE_PATH
from .surface import Surface

_FIRST_FACE_ID = 70  # from here on all points lie on the visible surface
_SURFACE_TOLERANCE = 0.005
_REGRESSED_TOLERANCE = 0.05  # regressed points float near the surface
_JOINT_TOLERANCE = 0.02
_LIMB_DEPTH = 0.2  # a joint lies inside its limb, which does not hide it


class Keypoints:
    """The table, ready to be evaluated.

    Attributes:
        names: the 308 names by id.
        lip_split: meters of jaw motion between upper and lower lip.
    """

    def __init__(self, surface: Surface) -> None:
        table = json.loads(TABLE_PATH.read_text())
        entries = table['keypoints']
        self.lip_split = table['lip_split']
        self.names = [entry['name'] for entry in entries]
        self._id = {name: i for i, name in enumerate(self.names)}
        body = surface.body
        rows, cols, weights, tolerance = [], [], [], []
        bones, tails = {}, {}
        for i, entry in enumerate(entries):
            if 'bone' in entry:
                target = bones if entry['end'] == 'head' else tails
                target[i] = body.bone_index[entry['bone']]
                tolerance.append(_JOINT_TOLERANCE)
                continue
            rows += [i] * len(entry['vertices'])
            cols += entry['vertices']
            weights += entry['weights']
            on_surface = i >= _FIRST_FACE_ID
            tolerance.append(_SURFACE_TOLERANCE if on_surface else _REGRESSED_TOLERANCE)
        shape = (len(entries), len(body.canonical.vertices))
        self._matrix = sparse.csr_matrix((weights, (rows, cols)), shape=shape)
        self._heads = np.array(list(bones.items()))
        self._tails = np.array(list(tails.items()))
        self._tolerance = np.array(tolerance)
        self._is_eye = np.array(['_iris' in n or '_pupil' in n for n in self.names])
        self._is_joint = np.array(['bone' in entry for entry in entries])
        self._near_regions = self._find_near_regions(surface)

    def _find_near_regions(self, surface: Surface) -> np.ndarray:
        """(308, 14) bool: regions whose skin surrounds a joint; none for others."""
        skin = surface.layer_vertices(Layer.SKIN)
        region = surface.regions[skin].argmax(axis=1)
        near = np.zeros((len(self.names), surface.regions.shape[1]), bool)
        joints = self.positions(surface.body.canonical)
        for i in np.nonzero(self._is_joint)[0]:
            distance = np.linalg.norm(surface.canonical[skin] - joints[i], axis=1)
            near[i, region[distance < distance.min() + 0.06]] = True
        return near

    def positions(self, body: PosedBody) -> np.ndarray:
        """(308, 3) float64 in the frame of ``body``."""
        points = self._matrix @ body.vertices.astype(np.float64)
        points[self._heads[:, 0]] = body.bone_heads[self._heads[:, 1]]
        points[self._tails[:, 0]] = body.bone_tails[self._tails[:, 1]]
        return points

    def position(self, body: PosedBody, name: str) -> np.ndarray:
        """(3,) one keypoint in the frame of ``body``."""
        return self.positions(body)[self._id[name]]

    def visibility(
        self,
        points: np.ndarray,
        pixels: np.ndarray,
        size: tuple[int, int],
        hit_depth: np.ndarray,
        hit_layer: np.ndarray,
        hit_region: np.ndarray,
    ) -> np.ndarray:
        """COCO visibility flags.

        Args:
            points: (308, 3) camera frame.
            pixels: (308, 2) their projections.
            size: (height, width) of the image.
            hit_depth: (308,) Z where the ray to each point first meets the
                person, inf for none.
            hit_layer: (308,) :class:`Layer` there, -1 for none.
            hit_region: (308,) region id there, 0 for none.

        Returns:
            (308,) 0 outside the image, 1 occluded, 2 visible.
        """
        height, width = size
        u, v = pixels.T
        inside = (u >= 0) & (u <= width - 1) & (v >= 0) & (v <= height - 1)
        hidden = hit_depth < points[:, 2] - self._tolerance
        own_limb = self._near_regions[np.arange(len(points)), hit_region]
        hidden &= ~(own_limb & (hit_depth > points[:, 2] - _LIMB_DEPTH))
        # A closed lid is thinner than any tolerance.
        seen = np.isin(hit_layer, (Layer.EYE_LEFT, Layer.EYE_RIGHT, Layer.GLASSES))
        hidden |= self._is_eye & ~seen
        return np.where(inside, np.where(hidden, 1, 2), 0)
