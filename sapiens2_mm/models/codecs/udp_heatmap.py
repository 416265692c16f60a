"""UDP keypoint heatmaps as batched tensor operations on any device.

The same numbers as ``mmpose.UDPHeatmap`` (``heatmap_type='gaussian'``), which works
in numpy, one person and one keypoint at a time. Sizes follow mmpose's codecs: input
and heatmap sizes are (width, height).

Decoding is no exact inverse of encoding, in mmpose and in the official code alike:
keypoints are encoded by the factor (W - 1) / (input width - 1), but decoded by
input width / (W - 1), and likewise in y. The round trip returns
``keypoint * input_size / (input_size - 1)``: an error of up to 1 pixel at the right
and bottom border. It cancels in top-down estimators, whose UDP crop divides by the
size minus one as well. Less than 24 pixels from a border of 1024x768 (sigma 6) the
map is cut off under the blur, which moves keypoints by up to 7 pixels; elsewhere the
rest is below 2e-4 pixels.
"""

from collections.abc import Sequence

import cv2
import torch
from torch import Tensor

from .separable import SeparableHeatmaps

# Bounds of the blurred heatmap before the logarithm (DARK-UDP).
_CLIP_MIN, _CLIP_MAX = 1e-3, 50.0
# Maps blurred at once; a chunk stays in the cache of a CPU.
_BLUR_CHUNK = 8


def encode_udp_heatmaps(
    keypoints: Tensor,
    visible: Tensor,
    input_size: Sequence[int],
    heatmap_size: Sequence[int],
    sigma: float,
) -> tuple[Tensor, Tensor]:
    """Gaussian target heatmaps with their center at the sub-pixel keypoint.

    A map is non-zero only in the square window of radius 3 sigma around the rounded
    center; its peak is 1 at the true center.

    Args:
        keypoints: (B, K, 2) x and y in input pixels.
        visible: (B, K); below 0.5 the map stays empty.
        input_size: (width, height) of the network input.
        heatmap_size: (width, height) of the heatmaps.
        sigma: standard deviation in heatmap pixels.

    Returns:
        Heatmaps (B, K, height, width) float32, and keypoint weights (B, K) float32:
        ``visible``, but 0 where the window lies wholly outside the map.
    """
    heatmaps, weights = separable_udp_heatmaps(
        keypoints, visible, input_size, heatmap_size, sigma
    )
    return heatmaps.dense(), weights


def separable_udp_heatmaps(
    keypoints: Tensor,
    visible: Tensor,
    input_size: Sequence[int],
    heatmap_size: Sequence[int],
    sigma: float,
) -> tuple[SeparableHeatmaps, Tensor]:
    """``encode_udp_heatmaps`` up to the product of the two axes; arguments alike."""
    visible = visible.float()
    size = keypoints.new_tensor(heatmap_size, dtype=torch.float32)
    scale = (keypoints.new_tensor(input_size, dtype=torch.float32) - 1) / (size - 1)
    center = keypoints.float() / scale
    radius = 3 * sigma
    # Rounding is truncation after + 0.5, and the window of a fractional radius is
    # truncated as well, both as in mmpose.
    rounded = (center + 0.5).trunc()
    start = (rounded - radius).trunc()
    stop = (rounded + radius + 1).trunc()
    outside = ((start >= size) | (stop < 0)).any(-1)
    weights = visible.masked_fill(outside & (visible >= 0.5), 0)
    drawn = ((visible >= 0.5) & ~outside).unsqueeze(-1)

    peak = start + (2 * radius + 1) // 2 + center - rounded
    profiles = []
    for axis, length in enumerate(heatmap_size):
        position = torch.arange(length, device=keypoints.device, dtype=torch.float32)
        inside = (position >= start[..., axis, None]) & (
            position < stop[..., axis, None]
        )
        distance = position - peak[..., axis, None]
        profile = torch.exp(distance.square() / (-2 * sigma**2))
        profiles.append(torch.where(inside & drawn, profile, 0.0))
    across, down = profiles

    height = heatmap_size[1]
    num_rows = min(int(2 * radius) + 2, height)
    first = start[..., 1:].nan_to_num(0).clamp(0, height - num_rows).long()
    rows = first + torch.arange(num_rows, device=first.device)
    return SeparableHeatmaps(down, across, rows), weights


def heatmap_maximum(heatmaps: Tensor) -> tuple[Tensor, Tensor]:
    """First maximum of each heatmap.

    Args:
        heatmaps: (B, K, H, W).

    Returns:
        Locations (B, K, 2), x and y, int64, and values (B, K).
    """
    # Row maxima first: much faster on a CPU than one argmax over H * W.
    values, y = heatmaps.amax(-1).max(-1)
    index = y[..., None, None].expand(-1, -1, 1, heatmaps.shape[-1])
    x = heatmaps.gather(-2, index).squeeze(-2).argmax(-1)
    return torch.stack((x, y), dim=-1), values


def decode_udp_heatmaps(
    heatmaps: Tensor, input_size: Sequence[int], blur_kernel_size: int = 11
) -> tuple[Tensor, Tensor]:
    """Sub-pixel keypoints by distribution-aware decoding (DARK) for UDP heatmaps.

    One Newton step on the logarithm of the blurred heatmap, from its maximum. Only
    the 3x3 neighborhood of the maximum is blurred; the rescaling of the blurred map
    to its old maximum cancels in the step, unless the clip before the logarithm
    bites, and only such maps are blurred as a whole.

    Args:
        heatmaps: (B, K, H, W), any floating dtype; computed in float32.
        input_size: (width, height) of the network input.
        blur_kernel_size: odd size of the Gaussian kernel.

    Returns:
        Keypoints (B, K, 2) in the input pixels of ``mmpose.UDPHeatmap``, and scores
        (B, K), the maxima; both float32. A map without a peak, because its maximum is
        not positive or not finite, or nothing around it is lower, says nothing: it
        gets score 0 and the center of the input. (mmpose: a place outside the input
        if the maximum is not positive, else any place, or NaN.)

    Source: Zhang et al., Distribution-Aware Coordinate Representation for Human Pose
    Estimation (CVPR 2020), section 3; Huang et al., The Devil is in the Details
    (CVPR 2020), section 3.
    """
    height, width = heatmaps.shape[-2:]
    locations, scores = heatmap_maximum(heatmaps)
    scores = scores.float()
    weights = _gaussian_kernel(blur_kernel_size)
    kernel = scores.new_tensor(weights)

    patch, inside = _patch_around(heatmaps, locations, kernel.numel() // 2 + 1)
    blurred = _blur_patch(patch, locations, (height, width), kernel)
    # The blurred maximum never exceeds the old one, so the factor that restores it
    # is >= 1 and no value leaves the clip range if none is below its lower bound.
    clipped = (blurred.amin((-2, -1)) < _CLIP_MIN) | (scores > _CLIP_MAX)
    clipped &= scores > _CLIP_MIN  # below, everything is clipped: no step
    if torch.compiler.is_compiling():  # a graph cannot choose maps by their values
        maxima = _blur(heatmaps.float(), weights).amax((-2, -1))
        factor = torch.where(clipped, scores / maxima, 1.0)
    else:
        factor = torch.ones_like(scores)
        factor[clipped] = scores[clipped] / _blurred_maximum(heatmaps, clipped, weights)
    blurred = (blurred * factor[..., None, None]).clip(_CLIP_MIN, _CLIP_MAX)

    lowest = torch.where(inside, patch, scores[..., None, None]).amin((-2, -1))
    peaked = (scores > 0) & scores.isfinite() & (lowest < scores)
    # numbers one by one: those of a traced graph may be symbols
    size = torch.stack([blurred.new_full((), n - 1) for n in (width, height)])
    keypoints = (locations - _newton_step(blurred)) / size
    keypoints = torch.where(peaked.unsqueeze(-1), keypoints, 0.5)
    size = torch.stack([blurred.new_full((), n) for n in input_size])
    return keypoints * size, torch.where(peaked, scores, 0.0)


def _gaussian_kernel(size: int) -> list[float]:
    """Float32 kernel of ``cv2.GaussianBlur`` with automatic sigma."""
    if size < 1 or size % 2 == 0:
        raise ValueError(f'blur_kernel_size must be odd and positive, got {size}')
    return cv2.getGaussianKernel(size, 0, cv2.CV_32F).ravel().tolist()


def _patch_around(
    heatmaps: Tensor, locations: Tensor, reach: int
) -> tuple[Tensor, Tensor]:
    """Values within ``reach`` pixels of each location, and which are in the map.

    Returns:
        (B, K, S, S) float32, 0 outside the map, and bool of that shape.
    """
    batch, num_keypoints, height, width = heatmaps.shape
    device = heatmaps.device
    offsets = torch.arange(-reach, reach + 1, device=device)
    x = locations[..., 0, None] + offsets  # (B, K, S)
    y = locations[..., 1, None] + offsets
    b = torch.arange(batch, device=device)[:, None, None, None]
    k = torch.arange(num_keypoints, device=device)[:, None, None]
    patch = heatmaps[
        b, k, y.clamp(0, height - 1).unsqueeze(-1), x.clamp(0, width - 1).unsqueeze(-2)
    ].float()
    inside_y = ((y >= 0) & (y < height)).unsqueeze(-1)
    inside = inside_y & ((x >= 0) & (x < width)).unsqueeze(-2)
    return torch.where(inside, patch, 0.0), inside


def _blur_patch(
    patch: Tensor, locations: Tensor, size: tuple[int, int], kernel: Tensor
) -> Tensor:
    """(B, K, 3, 3) blurred heatmap around each location, edges replicated.

    Outside the map the blur sees zeros. Sums of products on purpose: a convolution
    would run in reduced precision under autocast or TF32.

    Args:
        patch: of ``_patch_around``, one pixel wider than the kernel on each side.
        locations: (B, K, 2), x and y.
        size: (height, width) of the heatmaps.
        kernel: (S,) weights.
    """
    height, width = size
    batch, num_keypoints = locations.shape[:2]
    device = patch.device
    b = torch.arange(batch, device=device)[:, None, None, None]
    k = torch.arange(num_keypoints, device=device)[:, None, None]
    length = kernel.numel()
    patch = (patch.unfold(-1, length, 1) * kernel).sum(-1)  # (B, K, length + 2, 3)
    patch = (patch.unfold(-2, length, 1) * kernel).sum(-1)  # (B, K, 3, 3)

    near = torch.arange(-1, 2, device=device)
    column = (locations[..., 0, None] + near).clamp(0, width - 1)
    row = (locations[..., 1, None] + near).clamp(0, height - 1)
    column = column - locations[..., 0, None] + 1
    row = row - locations[..., 1, None] + 1
    return patch[b, k, row.unsqueeze(-1), column.unsqueeze(-2)]


def _blurred_maximum(heatmaps: Tensor, chosen: Tensor, weights: list[float]) -> Tensor:
    """(N,) maximum of each zero-padded, blurred map that (B, K) ``chosen`` marks."""
    maxima = [heatmaps.new_empty(0, dtype=torch.float32)]
    for b, k in zip(*(i.split(_BLUR_CHUNK) for i in chosen.nonzero().T), strict=True):
        maxima.append(_blur(heatmaps[b, k].float(), weights).amax((-2, -1)))
    return torch.cat(maxima)


def _blur(maps: Tensor, weights: list[float]) -> Tensor:
    return _blur_axis(_blur_axis(maps, weights, -2), weights, -1)


def _blur_axis(maps: Tensor, weights: list[float], axis: int) -> Tensor:
    reach = len(weights) // 2
    length = maps.shape[axis]
    padding = (reach, reach) if axis == -1 else (0, 0, reach, reach)
    padded = torch.nn.functional.pad(maps, padding)
    blurred = maps * weights[reach]
    pair = torch.empty_like(maps)
    for i in range(reach):  # the kernel is symmetric
        left = padded.narrow(axis, i, length)
        torch.add(left, padded.narrow(axis, 2 * reach - i, length), out=pair)
        blurred.add_(pair, alpha=weights[i])
    return blurred


def _newton_step(maps: Tensor) -> Tensor:
    """(B, K, 2) step to subtract: inverse Hessian times gradient of log (B, K, 3, 3).

    The logarithms are taken relative to the center, which cancels in every
    difference and would cost digits.
    """
    center = maps[..., 1:2, 1:2]
    log = torch.log1p((maps - center) / center).flatten(-2)
    top_left, top, _, left, _, right, _, low, low_right = log.unbind(-1)
    dx = 0.5 * (right - left)
    dy = 0.5 * (low - top)
    eps = torch.finfo(log.dtype).eps
    dxx = right + left + eps
    dyy = low + top + eps
    dxy = 0.5 * (low_right + top_left - right - left - low - top)
    step = torch.stack((dyy * dx - dxy * dy, dxx * dy - dxy * dx), dim=-1)
    step = step / (dxx * dyy - dxy.square()).unsqueeze(-1)
    # A singular Hessian tells nothing: stay at the maximum.
    return torch.where(step.isfinite().all(-1, keepdim=True), step, 0.0)
