"""Ray casting on the CPU with warp: primary visibility, shadows, probes.

Every mesh vertex carries a ``keep`` value; a hit whose interpolated value is
negative is passed through. This cuts garments along smooth curves that do not
follow mesh edges.
"""

# ruff: noqa: UP018, RUF046 - int(...) and float(...) declare variables in warp kernels

import numpy as np
import warp as wp

wp.config.log_level = wp.LOG_ERROR  # no banner, no line per compiled kernel
wp.set_module_options({'enable_backward': False})  # compiles in half the time

_DEVICE = 'cpu'
_MAX_LAYERS = 16  # hidden surfaces that a ray may cross before it gives up
_NUM_DIRECTIONS = 64


@wp.func
def _first_hit(
    mesh: wp.uint64,
    keep: wp.array(dtype=float),
    origin: wp.vec3,
    direction: wp.vec3,
    max_distance: float,
):
    """Face id (-1: none), barycentric (u, v) and distance of the first kept hit."""
    face = int(-1)
    u = float(0.0)
    v = float(0.0)
    start = float(0.0)
    for _ in range(wp.static(_MAX_LAYERS)):
        query = wp.mesh_query_ray(
            mesh, origin + direction * start, direction, max_distance - start
        )
        if not query.result:
            break
        i0 = wp.mesh_get_index(mesh, query.face * 3 + 0)
        i1 = wp.mesh_get_index(mesh, query.face * 3 + 1)
        i2 = wp.mesh_get_index(mesh, query.face * 3 + 2)
        w = 1.0 - query.u - query.v
        if keep[i0] * query.u + keep[i1] * query.v + keep[i2] * w >= 0.0:
            face = query.face
            u = query.u
            v = query.v
            start = start + query.t
            break
        start = start + query.t + 1.0e-4
    return face, u, v, start


@wp.kernel
def _cast_pixels(
    mesh: wp.uint64,
    keep: wp.array(dtype=float),
    focal: float,
    cx: float,
    cy: float,
    width: int,
    face: wp.array(dtype=int),
    bary: wp.array(dtype=wp.vec3),
    depth: wp.array(dtype=float),
):
    i = wp.tid()
    x = (float(i % width) - cx) / focal
    y = (float(i / width) - cy) / focal
    direction = wp.normalize(wp.vec3(x, y, 1.0))
    f, u, v, t = _first_hit(mesh, keep, wp.vec3(0.0, 0.0, 0.0), direction, 1.0e3)
    face[i] = f
    if f >= 0:
        bary[i] = wp.vec3(u, v, 1.0 - u - v)
        depth[i] = t * direction[2]


@wp.kernel
def _cast_rays(
    mesh: wp.uint64,
    keep: wp.array(dtype=float),
    origins: wp.array(dtype=wp.vec3),
    directions: wp.array(dtype=wp.vec3),
    face: wp.array(dtype=int),
    bary: wp.array(dtype=wp.vec3),
):
    i = wp.tid()
    f, u, v, _t = _first_hit(mesh, keep, origins[i], directions[i], 1.0e3)
    face[i] = f
    if f >= 0:
        bary[i] = wp.vec3(u, v, 1.0 - u - v)


@wp.kernel
def _sun_visibility(
    mesh: wp.uint64,
    keep: wp.array(dtype=float),
    points: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
    sun: wp.vec3,
    out: wp.array(dtype=float),
):
    i = wp.tid()
    if wp.dot(normals[i], sun) <= 0.0:
        out[i] = 0.0
        return
    origin = points[i] + normals[i] * 3.0e-3
    f, _u, _v, _t = _first_hit(mesh, keep, origin, sun, 3.0)
    out[i] = wp.where(f < 0, 1.0, 0.0)


@wp.kernel
def _ambient_visibility(
    mesh: wp.uint64,
    keep: wp.array(dtype=float),
    points: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
    directions: wp.array(dtype=wp.vec3),
    num_rays: int,
    out: wp.array(dtype=float),
):
    i = wp.tid()
    origin = points[i] + normals[i] * 3.0e-3
    unblocked = float(0.0)
    for j in range(num_rays):
        d = directions[(j + i * 7) % wp.static(_NUM_DIRECTIONS)]
        if wp.dot(d, normals[i]) < 0.0:
            d = -d
        f, _u, _v, _t = _first_hit(mesh, keep, origin, d, 1.0)
        if f < 0:
            unblocked += 1.0
    out[i] = unblocked / float(num_rays)


def _array(values: np.ndarray, dtype: type) -> wp.array:
    kind = np.int32 if dtype is int else np.float32
    return wp.array(
        np.ascontiguousarray(values, dtype=kind), dtype=dtype, device=_DEVICE
    )


class Caster:
    """Bounding volume hierarchy over one triangle mesh.

    Args:
        vertices: (N, 3) meters, in the frame of the later rays.
        faces: (F, 3).
        keep: (N,), negative where the surface is cut away; all kept if None.
    """

    def __init__(
        self, vertices: np.ndarray, faces: np.ndarray, keep: np.ndarray | None = None
    ) -> None:
        if keep is None:
            keep = np.ones(len(vertices))
        self._mesh = wp.Mesh(
            points=_array(vertices, wp.vec3), indices=_array(faces.reshape(-1), int)
        )
        self._keep = _array(keep, float)

    def _launch(self, kernel: wp.Kernel, num: int, inputs: list, outputs: list) -> None:
        wp.launch(
            kernel,
            dim=num,
            inputs=[self._mesh.id, self._keep, *inputs],
            outputs=outputs,
            device=_DEVICE,
        )

    def render(
        self, focal: float, cx: float, cy: float, height: int, width: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Cast one ray through every pixel center (integer coordinates).

        Returns:
            face ids (H, W), -1 where nothing is hit; barycentric weights
            (H, W, 3); depth Z in meters (H, W), 0 where nothing is hit.
        """
        num = height * width
        face = wp.empty(num, dtype=int, device=_DEVICE)
        bary = wp.zeros(num, dtype=wp.vec3, device=_DEVICE)
        depth = wp.zeros(num, dtype=float, device=_DEVICE)
        self._launch(_cast_pixels, num, [focal, cx, cy, width], [face, bary, depth])
        return (
            face.numpy().reshape(height, width),
            bary.numpy().reshape(height, width, 3),
            depth.numpy().reshape(height, width),
        )

    def shoot(
        self, origins: np.ndarray, directions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """First hits of free rays: face ids (R,), -1 for none, weights (R, 3)."""
        origins = np.atleast_2d(origins)
        directions = np.broadcast_to(directions, origins.shape)
        num = len(origins)
        face = wp.empty(num, dtype=int, device=_DEVICE)
        bary = wp.zeros(num, dtype=wp.vec3, device=_DEVICE)
        rays = [_array(origins, wp.vec3), _array(directions, wp.vec3)]
        self._launch(_cast_rays, num, rays, [face, bary])
        return face.numpy(), bary.numpy()

    def sun_visibility(
        self, points: np.ndarray, normals: np.ndarray, sun: np.ndarray
    ) -> np.ndarray:
        """(P,) 1 where the unit direction ``sun`` is free and above the surface."""
        out = wp.zeros(len(points), dtype=float, device=_DEVICE)
        arrays = [_array(points, wp.vec3), _array(normals, wp.vec3)]
        self._launch(
            _sun_visibility, len(points), [*arrays, wp.vec3(*map(float, sun))], [out]
        )
        return out.numpy()

    def ambient_visibility(
        self, points: np.ndarray, normals: np.ndarray, num_rays: int = 8
    ) -> np.ndarray:
        """(P,) share of free directions within 1 m in the normal's hemisphere."""
        directions = np.random.default_rng(0).normal(size=(_NUM_DIRECTIONS, 3))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        out = wp.zeros(len(points), dtype=float, device=_DEVICE)
        arrays = [_array(x, wp.vec3) for x in (points, normals, directions)]
        self._launch(_ambient_visibility, len(points), [*arrays, num_rays], [out])
        return out.numpy()
