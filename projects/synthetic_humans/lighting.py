"""Sun, sky, background and sensor: from albedo to an 8-bit photograph."""

from __future__ import annotations

import cv2
import numpy as np
from scipy.ndimage import gaussian_filter

from .classes import Layer
from .palette import GAMMA
from .raycast import Caster

_REFERENCE_HEIGHT = 1024  # sizes in pixels below are meant at this height
_AMBIENT_HEIGHT = 320  # ambient occlusion is smooth: few rows are enough


def shade(
    caster: Caster,
    pixels: tuple[np.ndarray, np.ndarray],
    size: tuple[int, int],
    points: np.ndarray,
    normals: np.ndarray,
    albedo: np.ndarray,
    layer: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Light the visible surface with a sun and a sky.

    Args:
        caster: the scene, for shadows.
        pixels: rows and columns (P,) of the visible pixels.
        size: (height, width) of the image.
        points, normals: (P, 3) camera frame, meters and unit length.
        albedo: (P, 3) linear.
        layer: (P,) :class:`Layer`.
        rng: source of the light's direction and color.

    Returns:
        (P, 3) linear radiance, not clipped.
    """
    sun = np.array(
        [rng.normal(0, 0.7), -abs(rng.normal(0.7, 0.4)), -abs(rng.normal(0.8, 0.4))]
    )
    sun /= np.linalg.norm(sun)
    sun_color = rng.uniform(0.6, 1.5) * (1 + rng.normal(0, 0.08, 3))
    sky_color = rng.uniform(0.25, 0.6) * (1 + rng.normal(0, 0.08, 3))

    lit = caster.sun_visibility(points, normals, sun)
    open_sky = _ambient(caster, pixels, size, points, normals)
    cosine = np.maximum(0, normals @ sun) * lit
    sky = (0.55 - 0.45 * normals[:, 1]) * open_sky * 1.6

    view = -points / np.linalg.norm(points, axis=1, keepdims=True)
    half = sun + view
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    is_eye = np.isin(layer, (Layer.EYE_LEFT, Layer.EYE_RIGHT))
    gloss, sharpness = np.where(is_eye, 0.6, 0.06), np.where(is_eye, 200, 40)
    highlight = gloss * np.maximum(0, (normals * half).sum(axis=1)) ** sharpness * lit
    return albedo * (np.outer(sky, sky_color) + np.outer(cosine, sun_color)) + np.outer(
        highlight, sun_color
    )


def _ambient(
    caster: Caster,
    pixels: tuple[np.ndarray, np.ndarray],
    size: tuple[int, int],
    points: np.ndarray,
    normals: np.ndarray,
) -> np.ndarray:
    """(P,) smoothed share of open sky, cast on a coarse grid of pixels."""
    rows, cols = pixels
    height, width = size
    step = max(1, round(height / _AMBIENT_HEIGHT))
    center = step // 2
    grid = (rows % step == center) & (cols % step == center)
    shape = (-(-height // step), -(-width // step))
    value, weight = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    at = rows[grid] // step, cols[grid] // step
    value[at] = caster.ambient_visibility(points[grid], normals[grid])
    weight[at] = 1
    sigma = max(0.8, 2.0 / step)

    def spread(image: np.ndarray) -> np.ndarray:
        image = cv2.GaussianBlur(image, (0, 0), sigma)
        full = (shape[1] * step, shape[0] * step)
        return cv2.resize(image, full, interpolation=cv2.INTER_LINEAR)[rows, cols]

    smooth, total = spread(value), spread(weight)
    return np.where(total > 1e-3, smooth / np.maximum(total, 1e-3), 1.0)


def make_background(size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Blurred gradient, noise and simple shapes; shows nothing human.

    Returns:
        (H, W, 3) float32, gamma-coded in [0, 1].
    """
    height, width = size
    scale = height / _REFERENCE_HEIGHT
    top, bottom = rng.uniform(0.1, 0.9, (2, 1)) + rng.normal(0, 0.08, (2, 3))
    ramp = np.linspace(0, 1, height)[:, None, None]
    image = np.zeros((height, width, 3), np.float32)
    image += top * (1 - ramp) + bottom * ramp
    coarse = (max(2, height // 4), max(2, width // 4))
    for sigma in (64, 24, 6):
        noise = gaussian_filter(rng.normal(size=coarse), max(0.5, sigma * scale / 4))
        noise = (noise / noise.std()).astype(np.float32)
        strength = rng.uniform(0, 0.05) + rng.normal(0, 0.008, 3)
        noise = cv2.resize(noise, (width, height))[..., None]
        image += noise * strength.astype(np.float32)
    for _ in range(rng.integers(3, 9)):
        x, y = rng.uniform(0, width), rng.uniform(0, height * 0.8)
        w, h = rng.uniform(30, 250) * scale, rng.uniform(30, 400) * scale
        color = np.clip(rng.uniform(0.05, 0.95) + rng.normal(0, 0.12, 3), 0, 1)
        overlay = image.copy()
        if rng.random() < 0.7:
            corner = (int(x - w / 2), int(y - h / 2)), (int(x + w / 2), int(y + h / 2))
            cv2.rectangle(overlay, *corner, color.tolist(), -1)
        else:
            cv2.circle(overlay, (int(x), int(y)), int(w / 2), color.tolist(), -1)
        image = cv2.addWeighted(image, 0.25, overlay, 0.75, 0)
    blur = max(0.4, rng.uniform(0.6, 4) * scale)
    return cv2.GaussianBlur(np.clip(image, 0, 1), (0, 0), blur)


def expose(
    background: np.ndarray,
    mask: np.ndarray,
    radiance: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Put the lit person on a background: gamma, soft edges, sensor noise.

    Args:
        background: (H, W, 3) gamma-coded; mask: (H, W) bool.
        radiance: (P, 3) linear, in the row-major order of ``mask``.
        rng: source of the noise.

    Returns:
        (H, W, 3) uint8 RGB.
    """
    image = background.copy()
    image[mask] = np.clip(radiance, 0, 1) ** (1 / GAMMA)
    edge = cv2.morphologyEx(
        mask.astype(np.uint8), cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)
    )
    soft = cv2.GaussianBlur(image, (0, 0), 0.6)
    image = np.where(edge[..., None] > 0, soft, image)
    image += rng.standard_normal(image.shape, dtype=np.float32) * 0.012
    return np.round(np.clip(image, 0, 1) * 255).astype(np.uint8)
