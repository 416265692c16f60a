"""Time heatmap decoding, targets and loss against mmpose's per-person codec.

Both sides run in turn in one process; the medians and their ratio are printed. On the
CPU it is processor time, which other processes do not lengthen.

    python tools/benchmark/pose_decode.py                      # 8 x 308 x 256 x 192
    python tools/benchmark/pose_decode.py --batch 2 --keypoints 17
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import sapiens2_mm.registry  # noqa: F401  prepares the import of mmpose

# isort: split
import cv2
import numpy as np
import torch
from mmpose.codecs import UDPHeatmap
from mmpose.evaluation.functional import pose_pck_accuracy
from mmpose.models.losses import KeypointMSELoss

from sapiens2_mm.models.codecs import (
    decode_udp_heatmaps,
    encode_udp_heatmaps,
    heatmap_pck,
    separable_udp_heatmaps,
)
from sapiens2_mm.models.losses.pose import keypoint_mse


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--keypoints', type=int, default=308)
    parser.add_argument(
        '--size', type=int, nargs=2, default=(256, 192), help='heatmap height, width'
    )
    parser.add_argument('--repeats', type=int, default=5)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument(
        '--device',
        default='cpu',
        help='device of our side; mmpose decodes on the CPU, transfer included',
    )
    return parser.parse_args(argv)


def median_times(
    functions: Sequence[Callable[[], object]], repeats: int, device: str
) -> list[float]:
    """Median seconds of each function; the functions take turns."""
    clock = time.process_time if device == 'cpu' else time.perf_counter
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(repeats + 1):
        for function, seconds in zip(functions, times, strict=True):
            start = clock()
            function()
            if device != 'cpu':
                torch.cuda.synchronize()
            if turn:  # the first turn only warms up
                seconds.append(clock() - start)
    return [statistics.median(seconds) for seconds in times]


def report(name: str, ours: float, mmpose: float) -> None:
    print(
        f'{name:28} ours {ours * 1e3:8.1f} ms   mmpose {mmpose * 1e3:8.1f} ms   '
        f'{mmpose / ours:5.1f} times as fast'
    )


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    torch.set_num_threads(args.threads)
    cv2.setNumThreads(args.threads)
    torch.manual_seed(0)
    batch, num_keypoints = args.batch, args.keypoints
    height, width = args.size
    input_size, heatmap_size = (4 * width, 4 * height), (width, height)
    codec = UDPHeatmap(input_size, heatmap_size, sigma=6)

    size = torch.tensor(input_size)
    keypoints = torch.rand(batch, num_keypoints, 2) * size
    visible = torch.ones(batch, num_keypoints)
    keypoints, visible = keypoints.to(args.device), visible.to(args.device)
    target, weights = encode_udp_heatmaps(
        keypoints, visible, input_size, heatmap_size, codec.sigma
    )
    peaks = target * (0.2 + 0.8 * torch.rand_like(weights))[..., None, None]
    # As a model sees a part that is not in the picture: weak and noisy everywhere.
    noise = 5e-3 * torch.randn_like(target)

    def mmpose_decode(heatmaps: torch.Tensor) -> list:
        return [codec.decode(maps) for maps in heatmaps.cpu().numpy()]

    def mmpose_encode() -> list:
        return [
            codec.encode(person[None], seen[None])
            for person, seen in zip(
                keypoints.cpu().numpy(), visible.cpu().numpy(), strict=True
            )
        ]

    print(
        f'{batch} x {num_keypoints} x {height} x {width} float32, {args.threads} '
        f'threads, ours on {args.device}, median of {args.repeats}'
    )
    for name, heatmaps in (('peaks', peaks), ('noise only', noise)):
        ours, _ = decode_udp_heatmaps(heatmaps, input_size)
        theirs = np.concatenate([points for points, _ in mmpose_decode(heatmaps)])
        error = np.abs(ours.cpu().numpy() - theirs).max(-1)
        print(
            f'decode {name}: difference to mmpose at most {error.max():.1e} px, '
            f'median {np.median(error):.1e} px'
        )
        report(
            f'decode {name}',
            *median_times(
                (
                    lambda maps=heatmaps: decode_udp_heatmaps(maps, input_size),
                    lambda maps=heatmaps: mmpose_decode(maps),
                ),
                args.repeats,
                args.device,
            ),
        )
    encode_args = (keypoints, visible, input_size, heatmap_size, codec.sigma)
    report(
        'make targets',
        *median_times(
            (lambda: encode_udp_heatmaps(*encode_args), mmpose_encode),
            args.repeats,
            args.device,
        ),
    )
    report(
        'PCK of the log',
        *median_times(
            (
                lambda: heatmap_pck(peaks, target, weights),
                lambda: pose_pck_accuracy(
                    peaks.cpu().numpy(), target.cpu().numpy(), weights.cpu().numpy() > 0
                ),
            ),
            args.repeats,
            args.device,
        ),
    )
    prediction = (peaks + noise).requires_grad_()
    mmpose_mse = KeypointMSELoss(use_target_weight=True)

    def gradient(loss: torch.Tensor) -> tuple[float, torch.Tensor]:
        return loss.item(), torch.autograd.grad(loss, prediction)[0]

    def our_loss() -> tuple[float, torch.Tensor]:
        return gradient(keypoint_mse(prediction, *separable_udp_heatmaps(*encode_args)))

    def our_loss_of_dense() -> tuple[float, torch.Tensor]:
        return gradient(keypoint_mse(prediction, *encode_udp_heatmaps(*encode_args)))

    def mmpose_loss() -> tuple[float, torch.Tensor]:
        encoded = mmpose_encode()
        heatmaps = torch.from_numpy(np.stack([each['heatmaps'] for each in encoded]))
        seen = np.concatenate([each['keypoint_weights'] for each in encoded])
        return gradient(
            mmpose_mse(
                prediction,
                heatmaps.to(args.device),
                torch.from_numpy(seen).to(args.device),
            )
        )

    (value, grad), (expected, expected_grad) = our_loss(), mmpose_loss()
    print(
        f'loss: {value:.9g}, of mmpose {expected:.9g}; gradients differ by at most '
        f'{(grad - expected_grad).abs().max():.1e}'
    )
    ours, dense, theirs = median_times(
        (our_loss, our_loss_of_dense, mmpose_loss), args.repeats, args.device
    )
    report('targets, loss, gradient', ours, theirs)
    report('the same with dense targets', dense, theirs)


if __name__ == '__main__':
    main()
