"""Render one sample: image and exact ground truth of every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .body import BodyModel, PosedBody
from .camera import Camera, sample_camera
from .classes import Layer
from .garments import Outfit, dress, sample_outfit
from .glasses import make_glasses
from .keypoints import Keypoints
from .lighting import expose, make_background, shade
from .mesh import VertexNormals
from .paint import Fragments, Painter
from .palette import sample_palette
from .plan import Traits, sample_traits
from .pose import SEATED, PoseSampler
from .raycast import Caster
from .shape import sample_expression, sample_shape
from .surface import Surface

_MAX_TRIES = 10  # poses drawn until the hands are free
_OPEN_SHELLS = (Layer.CLOTH, Layer.SKIRT)  # seen from both sides


@dataclass
class Sample:
    """One rendered person.

    Attributes:
        rgb: (H, W, 3) uint8.
        label: (H, W) uint8 class ids.
        albedo: (H, W, 3) float32 linear RGB, 0 on the background.
        normal: (H, W, 3) float32 unit normals, camera frame (X right, Y down,
            Z forward), 0 on the background.
        depth: (H, W) float32 Z in meters, 0 on the background.
        mask: (H, W) bool, True on the person.
        keypoints: (308, 3) float64: u, v in pixels and COCO visibility.
        keypoint_depth: (308,) Z in meters.
        camera: intrinsics and pose.
        framing, pose: names of what was drawn.
    """

    rgb: np.ndarray
    label: np.ndarray
    albedo: np.ndarray
    normal: np.ndarray
    depth: np.ndarray
    mask: np.ndarray
    keypoints: np.ndarray
    keypoint_depth: np.ndarray
    camera: Camera
    framing: str
    pose: str


class _Mesh(NamedTuple):
    """Dressed person in the camera frame; attributes as in ``Surface``."""

    vertices: np.ndarray
    faces: np.ndarray
    face_layer: np.ndarray
    face_uv: np.ndarray
    normals: np.ndarray
    keep: np.ndarray
    canonical: np.ndarray
    regions: np.ndarray
    arm: np.ndarray
    jaw: np.ndarray

    def blend(
        self, attribute: np.ndarray, face: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Interpolate a vertex attribute at P hits."""
        corners = self.faces[face]
        shape = (-1,) + (1,) * (attribute.ndim - 1)
        return sum(
            attribute[corners[:, k]] * weights[:, k].reshape(shape) for k in range(3)
        )


class Renderer:
    """Loads the body once and renders any sample of any data set.

    A sample depends on (seed, index, size) alone, never on what was rendered
    before or on the process.
    """

    def __init__(self) -> None:
        self.body = BodyModel()
        self.surface = Surface(self.body)
        self.poses = PoseSampler(self.body, self.surface)
        self.keypoints = Keypoints(self.surface)

    def render(self, seed: int, index: int, size: tuple[int, int]) -> Sample:
        """Render sample ``index`` of the data set with ``seed``.

        Args:
            seed: of the data set.
            index: of the sample.
            size: (height, width) in pixels.
        """
        rng = np.random.default_rng([seed, index])
        traits = sample_traits(seed, index)
        phenotype = sample_shape(rng)
        expression = sample_expression(traits.mouth, rng)
        for _ in range(_MAX_TRIES):
            rotations, pose = self.poses.sample(rng)
            posed = self.body.pose(rotations, phenotype, expression)
            if not self.poses.collides(posed.vertices):
                break
        outfit = sample_outfit(self.surface, traits, pose in SEATED, rng)
        palette = sample_palette(phenotype, rng)
        fine = self.surface.refine(posed.vertices)
        camera = sample_camera(
            fine[self._framed(traits)], size, traits.mouth != 'any', rng
        )
        mesh = self._build(outfit, posed, fine, camera, int(rng.integers(2**31)))
        caster = Caster(mesh.vertices, mesh.faces, mesh.keep)
        face, bary, depth = caster.render(camera.focal, camera.cx, camera.cy, *size)

        mask = face >= 0
        rows, cols = np.nonzero(mask)
        hit, weights = face[mask], bary[mask]
        layer = mesh.face_layer[hit]
        points = camera.unproject(cols, rows, depth[mask])
        normals = _facing_normals(
            mesh.blend(mesh.normals, hit, weights),
            points,
            np.isin(layer, _OPEN_SHELLS),
        )
        paint = Painter(self.surface, outfit, palette, self.keypoints.lip_split)
        classes, albedo = paint(self._fragments(mesh, hit, weights, layer))
        radiance = shade(
            caster, (rows, cols), size, points, normals, albedo, layer, rng
        )
        rgb = expose(make_background(size, rng), mask, radiance, rng)
        keypoints, keypoint_depth = self._keypoints(posed, camera, mesh, caster)

        def fill(values: np.ndarray) -> np.ndarray:
            image = np.zeros(mask.shape + values.shape[1:], values.dtype)
            image[mask] = values
            return image

        return Sample(
            rgb=rgb,
            label=fill(classes),
            albedo=fill(albedo),
            normal=fill(normals),
            depth=depth,
            mask=mask,
            keypoints=keypoints,
            keypoint_depth=keypoint_depth,
            camera=camera,
            framing=traits.framing,
            pose=pose,
        )

    def _framed(self, traits: Traits) -> np.ndarray:
        """Ids of the skin vertices that the camera has to show."""
        s = self.surface
        skin = s.layer_vertices(Layer.SKIN)
        lowest = {'full': -np.inf, 'upper': s.hip, 'head': s.neck[2] + 0.03}
        return skin[s.canonical[skin, 2] > lowest[traits.framing]]

    def _build(
        self,
        outfit: Outfit,
        posed: PosedBody,
        fine: np.ndarray,
        camera: Camera,
        noise_seed: int,
    ) -> _Mesh:
        s = self.surface
        vertices, keep = dress(s, outfit, fine, noise_seed)
        vertices = camera.to_camera(vertices)
        # Hidden shells must not reach the ray caster: they would make it crawl.
        kept = (keep[s.faces] >= 0).any(axis=1)
        mesh = _Mesh(
            vertices=vertices,
            faces=s.faces[kept],
            face_layer=s.face_layer[kept],
            face_uv=s.face_uv[kept],
            normals=s.normals(vertices),
            keep=keep,
            canonical=s.canonical,
            regions=s.regions,
            arm=s.arm,
            jaw=s.jaw,
        )
        if not outfit.glasses:
            return mesh
        eyes = [
            fine[s.layer_vertices(layer)].mean(axis=0)
            for layer in (Layer.EYE_LEFT, Layer.EYE_RIGHT)
        ]
        ears = [
            self.keypoints.position(posed, f'{side}_top_connecting_point_of_helix')
            for side in ('l', 'r')
        ]
        points, faces = make_glasses(*eyes, *ears)
        return _append_glasses(mesh, camera.to_camera(points), faces)

    def _fragments(
        self, mesh: _Mesh, hit: np.ndarray, weights: np.ndarray, layer: np.ndarray
    ) -> Fragments:
        skin = layer == Layer.SKIN
        lips = np.zeros(len(hit), np.float32)
        corners = mesh.face_uv[hit[skin]]
        uv = (corners * weights[skin][..., None]).sum(axis=1)
        lips[skin] = self.surface.mask('lips', uv)
        return Fragments(
            layer=layer,
            points=mesh.blend(mesh.canonical, hit, weights),
            regions=mesh.blend(mesh.regions, hit, weights),
            arm=mesh.blend(mesh.arm, hit, weights),
            lips=lips,
            jaw=mesh.blend(mesh.jaw, hit, weights),
        )

    def _keypoints(
        self, posed: PosedBody, camera: Camera, mesh: _Mesh, caster: Caster
    ) -> tuple[np.ndarray, np.ndarray]:
        points = camera.to_camera(self.keypoints.positions(posed))
        pixels = camera.project(points)
        rays = points / np.linalg.norm(points, axis=1, keepdims=True)
        face, weights = caster.shoot(np.zeros_like(points), rays)
        depth = np.where(
            face >= 0, mesh.blend(mesh.vertices, face, weights)[:, 2], np.inf
        )
        region = mesh.blend(mesh.regions, face, weights).argmax(axis=1)
        visibility = self.keypoints.visibility(
            points,
            pixels,
            (camera.height, camera.width),
            depth,
            np.where(face >= 0, mesh.face_layer[face], -1),
            region,
        )
        return np.column_stack([pixels, visibility]), points[:, 2]


def _append_glasses(mesh: _Mesh, points: np.ndarray, faces: np.ndarray) -> _Mesh:
    """Add spectacles; their normals are those of the faces' vertices."""
    num, start = len(points), len(mesh.vertices)

    def pad(values: np.ndarray) -> np.ndarray:
        extra = np.zeros((num, *values.shape[1:]), values.dtype)
        return np.concatenate([values, extra])

    points = points.astype(np.float32)
    normals = VertexNormals(faces, num)(points)
    return _Mesh(
        vertices=np.concatenate([mesh.vertices, points]),
        faces=np.concatenate([mesh.faces, faces + start]),
        face_layer=np.concatenate(
            [mesh.face_layer, np.full(len(faces), Layer.GLASSES)]
        ),
        face_uv=np.concatenate(
            [mesh.face_uv, np.zeros((len(faces), 3, 2), np.float32)]
        ),
        normals=np.concatenate([mesh.normals, normals]).astype(np.float32),
        keep=np.concatenate([mesh.keep, np.ones(num, np.float32)]),
        canonical=pad(mesh.canonical),
        regions=pad(mesh.regions),
        arm=pad(mesh.arm),
        jaw=pad(mesh.jaw),
    )


def _facing_normals(
    normals: np.ndarray, points: np.ndarray, two_sided: np.ndarray
) -> np.ndarray:
    """Unit normals that face the camera.

    Open shells are turned around; interpolated normals that tip over at a
    silhouette are pushed back to the edge of the visible half sphere.
    """
    view = -points / np.linalg.norm(points, axis=1, keepdims=True)
    normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    cosine = (normals * view).sum(axis=1)
    turn = (cosine < 0) & two_sided
    normals[turn] *= -1
    cosine[turn] *= -1
    normals += np.maximum(0, 0.01 - cosine)[:, None] * view
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)
