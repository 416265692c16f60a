"""Arithmetic of the dense metrics: sums over one sample, to be added up."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

Sums = dict[str, Tensor]


def angular_error(pred: Tensor, target: Tensor, valid: Tensor) -> Tensor:
    """Angle between vectors.

    Args:
        pred: (3, H, W), any length; a zero vector counts as 90 degrees off.
        target: (3, H, W), any length.
        valid: (1, H, W) bool.

    Returns:
        (M,) float64 degrees in [0, 180], one per valid pixel; empty if none.
    """
    pred, target = (F.normalize(x[:, valid[0]].double(), dim=0) for x in (pred, target))
    return torch.rad2deg((pred * target).sum(0).clamp(-1, 1).acos())


def angle_sums(angles: Tensor, thresholds: Sequence[float], bin_width: float) -> Sums:
    """Count, sum, sum of squares, numbers below the thresholds, and a histogram.

    Args:
        angles: (M,) degrees.
        thresholds: degrees; strictly below counts.
        bin_width: of the histogram over [0, 180], degrees.
    """
    num_bins = round(180 / bin_width)
    bins = (angles / bin_width).long().clamp(max=num_bins - 1)
    return dict(
        angle_count=torch.tensor(len(angles)),
        angle_sum=angles.sum(),
        angle_square_sum=angles.square().sum(),
        angle_below=torch.stack([(angles < t).sum() for t in thresholds]),
        angle_histogram=torch.bincount(bins, minlength=num_bins),
    )


def histogram_median(histogram: Tensor, bin_width: float) -> float:
    """Center of the bin that holds the median."""
    cumulative = histogram.cumsum(0)
    index = torch.searchsorted(cumulative, (cumulative[-1] + 1) // 2)
    return (index.item() + 0.5) * bin_width


def distance_sums(
    pred: Tensor, target: Tensor, valid: Tensor, thresholds: Sequence[float]
) -> Sums:
    """Errors of points.

    Args:
        pred: (3, H, W).
        target: (3, H, W).
        valid: (1, H, W) bool.
        thresholds: distances; strictly below counts.

    Returns:
        Count of points, sums of their distance, its square, and the absolute error of
        x, y, z (3,), and the numbers below the thresholds.
    """
    error = pred[:, valid[0]].double() - target[:, valid[0]].double()
    distance = error.norm(dim=0)
    return dict(
        count=torch.tensor(distance.numel()),
        distance_sum=distance.sum(),
        square_sum=distance.square().sum(),
        axis_sum=error.abs().sum(1),
        below=torch.stack([(distance < t).sum() for t in thresholds]),
    )


def sobel_normals(points: Tensor) -> Tensor:
    """Normals from 5x5 Sobel gradients of a pointmap with reflected borders.

    Args:
        points: (3, H, W), sides above 2.

    Returns:
        (3, H, W) float64, not normalized, pointing away from the camera on a visible
        surface.
    """
    smooth = points.new_tensor([1, 4, 6, 4, 1], dtype=torch.float64)
    slope = points.new_tensor([-1, -2, 0, 2, 1], dtype=torch.float64)
    kernels = torch.stack([torch.outer(smooth, slope), torch.outer(slope, smooth)])
    padded = F.pad(points[:, None].double(), (2, 2, 2, 2), mode='reflect')
    gradient = F.conv2d(padded, kernels[:, None])  # (3, 2, H, W)
    return torch.cross(gradient[:, 0], gradient[:, 1], dim=0)


def color_sums(pred: Tensor, target: Tensor, valid: Tensor) -> Sums:
    """Errors of colors and of their forward differences.

    Args:
        pred: (3, H, W).
        target: (3, H, W).
        valid: (1, H, W) bool. A difference counts if both pixels are valid.

    Returns:
        Element counts and sums; a pixel has 3 elements.
    """
    error = pred.double() - target.double()
    values = error[:, valid[0]]
    sums = dict(
        count=torch.tensor(values.numel()),
        absolute_sum=values.abs().sum(),
        square_sum=values.square().sum(),
        gradient_count=torch.tensor(0),
        gradient_sum=torch.zeros((), dtype=torch.float64),
    )
    for dim in (1, 2):
        size = error.shape[dim] - 1
        both = (valid.narrow(dim, 1, size) & valid.narrow(dim, 0, size))[0]
        gradient = (error.narrow(dim, 1, size) - error.narrow(dim, 0, size))[:, both]
        sums['gradient_count'] = sums['gradient_count'] + gradient.numel()
        sums['gradient_sum'] = sums['gradient_sum'] + gradient.abs().sum()
    return sums


def masked_ssim_sums(
    pred: Tensor, target: Tensor, valid: Tensor, data_range: float
) -> Sums:
    """Structural similarity within a mask.

    Windows are Gaussian (11x11, sigma 1.5), weighted by the mask; a window counts if
    more than half of its weight is valid.

    Args:
        pred: (3, H, W).
        target: (3, H, W).
        valid: (1, H, W) bool.
        data_range: largest minus smallest possible value.

    Returns:
        Number of counted windows (times channels) and the sum of their similarity.
    """
    taps = torch.arange(-5, 6, device=pred.device, dtype=torch.float64)
    taps = torch.exp(-taps.square() / (2 * 1.5**2))
    kernel = (taps / taps.sum())[None, None, None]

    def blur(x: Tensor) -> Tensor:
        x = F.conv2d(x[:, None], kernel, padding=(0, 5))
        return F.conv2d(x, kernel.mT, padding=(5, 0))[:, 0]

    mask = valid.double()
    weight = blur(mask)
    x, y = pred.double() * mask, target.double() * mask
    stack = blur(torch.cat([x, y, x * x, y * y, x * y])) / weight.clamp(min=1e-6)
    mean_x, mean_y, square_x, square_y, product = stack.split(len(x))
    var_x = (square_x - mean_x.square()).clamp(min=0)
    var_y = (square_y - mean_y.square()).clamp(min=0)
    covariance = product - mean_x * mean_y
    c1, c2 = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2
    similarity = (2 * mean_x * mean_y + c1) * (2 * covariance + c2)
    similarity = similarity / (mean_x**2 + mean_y**2 + c1) / (var_x + var_y + c2)
    counted = (weight > 0.5).expand_as(similarity)
    return dict(
        ssim_count=counted.sum(),
        ssim_sum=similarity[counted].sum(),
    )


def align_depth(pred: Tensor, target: Tensor, with_shift: bool) -> Tensor:
    """Least-squares fit of a prediction to the truth.

    Args:
        pred: (M,).
        target: (M,).
        with_shift: fit a factor and an offset, else a factor only.

    Returns:
        (M,) float64, the fitted prediction.
    """
    columns = [pred.double()]
    if with_shift:
        columns.append(torch.ones_like(columns[0]))
    matrix = torch.stack(columns, dim=1)
    solution = torch.linalg.lstsq(matrix, target.double()[:, None]).solution
    return (matrix @ solution)[:, 0]
