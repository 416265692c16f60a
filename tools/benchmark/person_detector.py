"""Recall and precision of a person detector at IoU 0.5, and its time per picture.

    python tools/benchmark/person_detector.py --boxes people.json --pictures photos
    python tools/benchmark/person_detector.py --renders data/synthetic_humans

Takes pictures with the boxes of all their people in a COCO-style JSON, or puts rendered
people (projects/synthetic_humans) together, several in a scene. Without ``--det CONFIG
CHECKPOINT`` of mmdet the detector is MoveNet.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import cv2
import numpy as np
import torch
from torchvision.ops import box_iou

from sapiens2_mm.apis import BoxFile, MMDetDetector, MoveNetDetector
from sapiens2_mm.apis.person_detectors.person_detector import PersonDetector
from sapiens2_mm.datasets.io.image import read_image

SIZES = {'small': 0.25, 'medium': 0.5, 'large': np.inf}  # height, of the picture's
Scene = tuple[np.ndarray, np.ndarray]  # (H, W, 3) BGR, (N, 4) xyxy


def annotated(file: str, folder: str) -> Iterator[Scene]:
    for name, (_, boxes) in BoxFile.read(file).boxes.items():
        corners = np.reshape(np.float32(boxes), (-1, 4))
        corners[:, 2:] += corners[:, :2]
        yield read_image(Path(folder) / name), corners


def cut_out(renders: Path, name: str) -> tuple[np.ndarray, np.ndarray, bool]:
    """Picture and (H, W) bool mask of a rendered person, and if the legs are cut."""
    image = read_image(renders / 'rgb' / name)
    labels = cv2.imread(str(renders / 'seg' / f'{Path(name).stem}.png'), -1)
    left, top, width, height = cv2.boundingRect((labels > 0).astype(np.uint8))
    part = slice(top, top + height), slice(left, left + width)
    return image[part], labels[part] > 0, top + height == len(labels)


def composed(
    renders: Path, number: int, most: int = 6, size: tuple[int, int] = (640, 960)
) -> Iterator[Scene]:
    """Scenes of (height, width) with 1 to ``most`` people.

    Up to six are 15 to 90 % as tall as the scene, more are as much smaller. The boxes
    are those of the visible parts; nobody hides more than half of another. People
    without legs stand at the lower border.
    """
    rng = np.random.default_rng(0)
    names = sorted(path.name for path in (renders / 'rgb').iterdir())
    height, width = size
    smaller = min(1, (6 / most) ** 0.5)
    for _ in range(number):
        wall = read_image(renders / 'rgb' / rng.choice(names))
        scene = cv2.resize(cv2.blur(wall, (99, 99)), (width, height))
        owner = np.zeros(size, int)
        for person in range(1, rng.integers(1, most + 1) + 1):
            image, mask, is_cut = cut_out(renders, rng.choice(names))
            tall = smaller * rng.uniform(0.15, 0.9) * height
            scale = min(tall / len(mask), 0.5 * width / mask.shape[1])
            image = cv2.resize(image, None, fx=scale, fy=scale, interpolation=3)
            mask = cv2.resize(mask.astype(np.uint8), image.shape[1::-1]) > 0
            x = rng.integers(0, width - mask.shape[1])
            y = height - len(mask)
            if not is_cut:
                y = rng.integers(0, y)
            part = slice(y, y + len(mask)), slice(x, x + mask.shape[1])
            hidden = Counter(owner[part][mask].tolist())
            if all(
                count < 0.5 * (owner == other).sum()
                for other, count in hidden.items()
                if other
            ):
                scene[part][mask] = image[mask]
                owner[part][mask] = person
        rects = [
            cv2.boundingRect((owner == person).astype(np.uint8))
            for person in np.unique(owner[owner > 0])
        ]
        yield scene, np.float32([[x, y, x + w, y + h] for x, y, w, h in rects])


def evaluate(detector: PersonDetector, scenes: Iterable[Scene]) -> list[str]:
    """Lines of a table: people and recall by size, precision, time."""
    people, hits, boxes, seconds, pictures = Counter(), Counter(), 0, 0.0, 0
    for image, truth in scenes:
        start = time.perf_counter()
        found = detector(image)
        seconds += time.perf_counter() - start
        pictures, boxes = pictures + 1, boxes + len(found)
        heights = (truth[:, 3] - truth[:, 1]) / len(image)
        sizes = [next(n for n, top in SIZES.items() if h < top) for h in heights]
        people.update(sizes)
        overlaps = box_iou(torch.from_numpy(found[:, :4]), torch.from_numpy(truth))
        overlaps = overlaps.numpy().copy()
        for row in overlaps:  # the best first; each takes one person
            if len(row) and row.max() >= 0.5:
                hits[sizes[row.argmax()]] += 1
                overlaps[:, row.argmax()] = 0
    lines = [f'{detector.name}, score from {detector.score_thr}, {pictures} pictures']
    for size in SIZES:
        if people[size]:
            recall = hits[size] / people[size]
            lines.append(f'{size:9} recall {recall:.2f} of {people[size]} people')
    recall = hits.total() / max(1, people.total())
    lines.append(f'{"all":9} recall {recall:.2f} of {people.total()} people')
    lines.append(
        f'          precision {hits.total() / max(1, boxes):.2f} of {boxes} boxes'
    )
    lines.append(f'          {1000 * seconds / max(1, pictures):.0f} ms per picture')
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    pictures = parser.add_mutually_exclusive_group(required=True)
    pictures.add_argument('--boxes', help='COCO-style JSON')
    pictures.add_argument('--renders', type=Path, help='folder of rendered people')
    parser.add_argument('--pictures', default='.', help='folder of those of --boxes')
    parser.add_argument('--scenes', type=int, default=100, help='of renders (100)')
    parser.add_argument('--most', type=int, default=6, help='people of a scene (6)')
    parser.add_argument('--det', nargs=2, metavar=('CONFIG', 'CHECKPOINT'))
    parser.add_argument('--det-thr', type=float)
    args = parser.parse_args()
    options = {} if args.det_thr is None else dict(score_thr=args.det_thr)
    detector = (
        MMDetDetector(*args.det, **options) if args.det else MoveNetDetector(**options)
    )
    scenes = (
        annotated(args.boxes, args.pictures)
        if args.boxes
        else composed(args.renders, args.scenes, args.most)
    )
    print('\n'.join(evaluate(detector, scenes)))


if __name__ == '__main__':
    main()
