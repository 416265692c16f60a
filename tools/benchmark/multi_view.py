"""Time six views of a JPEG against torchvision, and the ways to make one, one thread.

``python tools/benchmark/multi_view.py [IMAGE]`` prints the images/s of a loader worker
from encoded images of two sizes, by ``MultiViewCrop`` and by torchvision's transforms
v2, and which library ``RandomView`` should use for what.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import cv2
import numpy as np
import torch
from mmengine.dataset import Compose
from PIL import Image
from torchvision.io import ImageReadMode, decode_jpeg
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms.v2 import functional as F

from sapiens2_mm.datasets.io.image import decode_image
from sapiens2_mm.datasets.pretrain.skipping import planned_reduction
from sapiens2_mm.datasets.transforms import MultiViewCrop

PHOTOS = ((1600, 1200), (4000, 3000))  # (height, width)
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


def noise(height: int, width: int) -> np.ndarray:
    """A picture without edges, as large as a photograph once encoded."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)


def our_views() -> Callable[[bytes], object]:
    """Six views of an encoded image, as a pretraining dataset makes them."""
    colors = dict(jitter_prob=0.8, grayscale_prob=0.2, blur_prob=0.5, solarize_prob=0.2)
    crop = MultiViewCrop(
        [
            dict(num_views=2, size=SIZES['global'], area=(0.5, 1.0)),
            dict(num_views=4, size=SIZES['local'], area=(0.2, 0.7), **colors),
        ]
    )
    pipeline, rng = Compose([crop]), np.random.default_rng(0)

    def views(data: bytes) -> list[np.ndarray]:
        results = dict(rng=rng)
        reduction = planned_reduction(pipeline, results)
        results['img'] = decode_image(data, 'image', reduction)
        return pipeline(results)['img']

    return views


def torchvision_views() -> Callable[[bytes], object]:
    """The same views by torchvision's decoder and transforms v2."""

    def crop(size: tuple[int, int], area: tuple[float, float]) -> list:
        ratio = (0.75 * 3 / 4, 0.75 * 4 / 3)
        cut = v2.RandomResizedCrop(
            size, area, ratio, InterpolationMode.BICUBIC, antialias=True
        )
        return [cut, v2.RandomHorizontalFlip()]

    jitter = v2.ColorJitter(0.4, 0.4, 0.2, 0.1)
    global_ = v2.Compose(crop(SIZES['global'], (0.5, 1.0)))
    local = v2.Compose(
        [
            *crop(SIZES['local'], (0.2, 0.7)),
            v2.RandomApply([jitter], 0.8),
            v2.RandomGrayscale(0.2),
            v2.RandomApply([v2.GaussianBlur(9, (0.1, 2.0))], 0.5),
            v2.RandomSolarize(128, 0.2),
        ]
    )

    def views(data: bytes) -> list[torch.Tensor]:
        encoded = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        image = decode_jpeg(encoded, ImageReadMode.RGB)
        return [view(image) for view in (global_, global_, local, local, local, local)]

    return views


def compare(repeats: int = 15) -> None:
    """Print images/s of both ways and their ratio."""
    print('six views of a JPEG, images/s of one worker')
    for height, width in PHOTOS:
        data = cv2.imencode('.jpg', noise(height, width))[1].tobytes()
        speeds = {}
        for name, make in (('torchvision', torchvision_views), ('ours', our_views)):
            speeds[name] = 1 / mean_seconds(partial(make(), data), repeats)
            print(f'  {speeds[name]:7.2f}  {name}, image of {height}x{width}')
        print(f'  {speeds["ours"] / speeds["torchvision"]:7.2f}  times as fast')


def mean_seconds(function: Callable[[], object], repeats: int) -> float:
    """Processor seconds of a call; the work differs from call to call."""
    torch.manual_seed(0)
    function()
    start = time.process_time()
    for _ in range(repeats):
        function()
    return (time.process_time() - start) / repeats


def main() -> None:
    parser = argparse.ArgumentParser(description='Time the parts of a view')
    parser.add_argument('image', nargs='?', help='default: noise of 1600x1200')
    args = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    compare()
    image = noise(*PHOTOS[0]) if args.image is None else cv2.imread(args.image)
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
