"""Time heatmap decoding and target making against mmpose's per-person codec.

Both sides run in turn in one process; the medians and their ratio are printed.

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

from sapiens2_mm.models.codecs.udp_heatmap import (
    decode_udp_heatmaps,
    encode_udp_heatmaps,
    heatmap_pck,
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
    parser.add_argument('--threads', type=int, default=torch.get_num_threads())
    parser.add_argument(
        '--device',
        default='cpu',
        help='device of our side; mmpose decodes on the CPU, transfer included',
    )
    return parser.parse_args(argv)


def median_times(
    functions: Sequence[Callable[[], object]], repeats: int
) -> list[float]:
    """Median seconds of each function; the functions take turns."""
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(repeats + 1):
        for function, seconds in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if turn:  # the first turn only warms up
                seconds.append(time.perf_counter() - start)
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
            ),
        )
    report(
        'make targets',
        *median_times(
            (
                lambda: encode_udp_heatmaps(
                    keypoints, visible, input_size, heatmap_size, codec.sigma
                ),
                mmpose_encode,
            ),
            args.repeats,
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
        ),
    )
    prediction = peaks.clone().requires_grad_()

    def loss_and_gradient() -> None:
        prediction.grad = None
        keypoint_mse(prediction, target, weights).backward()

    (seconds,) = median_times((loss_and_gradient,), args.repeats)
    print(f'{"loss and its gradient":28} ours {seconds * 1e3:8.1f} ms')


if __name__ == '__main__':
    main()
