"""Time the ways to crop, enlarge and recolor views of one image, one thread.

Says which library ``RandomView`` should use for what: ``python
tools/benchmark/multi_view.py [IMAGE]``.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import cv2
import numpy as np
import torch
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as F

SIZES = {'global': (1024, 768), 'local': (512, 384)}  # (height, width)


def milliseconds(function: Callable[[], object], repeats: int = 15) -> float:
    """Median time of a call."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def resizes(image: np.ndarray, size: tuple[int, int]) -> dict[str, Callable]:
    """Resizes of a crop of most of the image to (height, width)."""
    height, width = image.shape[:2]
    box = (height // 20, width // 20, height * 9 // 10, width * 9 // 10)
    crop = image[box[0] : box[0] + box[2], box[1] : box[1] + box[3]]
    last = torch.from_numpy(image).permute(2, 0, 1)
    first = last.contiguous()
    picture = Image.fromarray(image)
    edges = (box[1], box[0], box[1] + box[3], box[0] + box[2])

    def torchvision(tensor: torch.Tensor) -> torch.Tensor:
        return F.resized_crop(
            tensor,
            *box,
            list(size),
            interpolation=InterpolationMode.BICUBIC,
            antialias=True,
        )

    return {
        'torchvision bicubic antialias, channels last': lambda: torchvision(last),
        'torchvision bicubic antialias, channels first': lambda: torchvision(first),
        'pillow bicubic antialias': lambda: np.asarray(
            picture.resize(size[::-1], Image.Resampling.BICUBIC, box=edges)
        ),
        'opencv area': lambda: cv2.resize(
            crop, size[::-1], interpolation=cv2.INTER_AREA
        ),
        'opencv cubic, NOT antialiased': lambda: cv2.resize(
            crop, size[::-1], interpolation=cv2.INTER_CUBIC
        ),
    }


def colors(image: np.ndarray) -> dict[str, Callable]:
    """Color changes of a local view."""
    tensor = torch.from_numpy(image).permute(2, 0, 1).contiguous()
    table = np.arange(256, dtype=np.uint8)[::-1].copy()
    return {
        'brightness torchvision': lambda: F.adjust_brightness(tensor, 1.2),
        'brightness opencv (table)': lambda: cv2.LUT(image, table),
        'hue torchvision': lambda: F.adjust_hue(tensor, 0.05),
        'hue opencv (HSV and back)': lambda: cv2.cvtColor(
            cv2.cvtColor(image, cv2.COLOR_BGR2HSV_FULL), cv2.COLOR_HSV2BGR_FULL
        ),
        'blur 9 torchvision': lambda: F.gaussian_blur(tensor, [9, 9], [1.0, 1.0]),
        'blur 9 opencv': lambda: cv2.GaussianBlur(image, (9, 9), 1.0),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description='Time the parts of a view')
    parser.add_argument('image', nargs='?', help='default: noise of 1600x1200')
    args = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    if args.image is None:
        rng = np.random.default_rng(0)
        image = rng.integers(0, 256, (200, 150, 3), dtype=np.uint8)
        image = cv2.resize(image, (1200, 1600), interpolation=cv2.INTER_CUBIC)
    else:
        image = cv2.imread(args.image)
    for kind, size in SIZES.items():
        print(f'\n{kind} view of {size} from an image of {image.shape[:2]}, ms')
        for name, function in resizes(image, size).items():
            print(f'  {milliseconds(function):7.2f}  {name}')
    print('\ncolor of a local view, ms')
    local = cv2.resize(image, SIZES['local'][::-1], interpolation=cv2.INTER_AREA)
    for name, function in colors(local).items():
        print(f'  {milliseconds(function):7.2f}  {name}')


if __name__ == '__main__':
    main()
