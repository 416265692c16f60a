"""Predict pictures with an ONNX file of tools/export.py, without this package.

    python tools/onnx_runner.py model.onnx photos/*.jpg --out-dir outputs
    python tools/onnx_runner.py pose.onnx photo.jpg --box 40 20 310 600

Needs onnxruntime, numpy and cv2, which reads, resizes and writes the pictures; this
file may be copied. A file with post-processing gives, in the frame of each picture,
NAME.npz (maps, class ids, keypoints) and the drawing NAME.png, for pose NAME.json too;
one without gives the raw outputs. Class ids are enlarged by nearest pixel, where the
package enlarges the logits. The exit code is 1 if a picture has no result.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime

_ENLARGE = dict(bicubic=cv2.INTER_CUBIC, bilinear=cv2.INTER_LINEAR)
Results = dict[str, np.ndarray]
Restore = Callable[[str, np.ndarray], np.ndarray]


class Runner:
    """An exported model.

    Args:
        path: of the ONNX file.
        size: (height, width) to run at; None takes that of the file.
        providers: of onnxruntime, such as ``['CUDAExecutionProvider']``.

    Raises:
        ValueError: if the file is not of tools/export.py, or has another fixed size.
    """

    def __init__(
        self,
        path: str,
        size: Sequence[int] | None = None,
        providers: Sequence[str] = ('CPUExecutionProvider',),
    ) -> None:
        self.session = onnxruntime.InferenceSession(path, providers=list(providers))
        stored = self.session.get_modelmeta().custom_metadata_map
        if 'sapiens2_mm' not in stored:
            raise ValueError(
                f'{path} was not written by tools/export.py of sapiens2_mm'
            )
        self.meta = json.loads(stored['sapiens2_mm'])
        image = self.meta['input']
        own = (image['height'], image['width'])
        self.size = tuple(size or own)
        multiple = image['size_multiple']
        if self.size != own and 'size' not in image['dynamic']:
            raise ValueError(
                f'{path} takes {own[0]} x {own[1]} (height x width), got {self.size}; '
                'export it with --dynamic batch,size'
            )
        if any(side % multiple for side in self.size):
            raise ValueError(f'height and width must be multiples of {multiple}')

    def __call__(
        self, picture: np.ndarray, box: Sequence[float] | None = None
    ) -> Results:
        """Results of a (H, W, 3) uint8 BGR picture.

        Args:
            picture: of any size.
            box: (x1, y1, x2, y2) of a person, for pose; the whole picture if None.

        Returns:
            Name -> array, maps (H, W) or (H, W, C) of the picture's size and keypoints
            (K, 2) in its pixels. Without post-processing, outputs as they are.
        """
        prepared, restore = self._prepare(picture, box)
        if self.meta['input']['channel_order'] == 'rgb':
            prepared = prepared[..., ::-1]
        images = np.ascontiguousarray(prepared[None])
        if not self.meta['postprocess']:
            mean, std = (
                np.float32(self.meta['input'][name]) for name in ('mean', 'std')
            )
            images = ((images - mean) / std).transpose(0, 3, 1, 2)
            images = np.ascontiguousarray(images, np.float32)
        values = self.session.run(None, dict(images=images))
        outputs = dict(zip(self.meta['outputs'], values, strict=True))
        outputs = {name: value[0] for name, value in outputs.items()}
        if not self.meta['postprocess'] or self.meta['task'] == 'backbone':
            return outputs
        return {name: restore(name, value) for name, value in outputs.items()}

    def _prepare(
        self, picture: np.ndarray, box: Sequence[float] | None
    ) -> tuple[np.ndarray, Restore]:
        """The input of the network, and a function from its frame to the picture's."""
        prepare = self.meta['prepare']
        kind = prepare.get('resize', 'stretch')
        height, width = self.size
        if kind == 'person':
            return self._crop(picture, box, prepare['padding'])
        old_height, old_width = picture.shape[:2]
        if kind == 'letterbox':
            scale = min(height / old_height, width / old_width)
            whole = round if prepare['rounding'] == 'round' else int
            new_height, new_width = (
                min(max(whole(side * scale + 1e-9), 1), limit)
                for side, limit in ((old_height, height), (old_width, width))
            )
            left, top = (width - new_width) // 2, (height - new_height) // 2
            method = cv2.INTER_LINEAR
        else:
            left, top, new_height, new_width = 0, 0, height, width
            shrinks = width < old_width and prepare.get('shrink') == 'area'
            enlarge = _ENLARGE[prepare.get('enlarge', 'bilinear')]
            method = cv2.INTER_AREA if shrinks else enlarge
        shown = (slice(top, top + new_height), slice(left, left + new_width))
        canvas = np.zeros((height, width, 3), np.uint8)
        canvas[shown] = cv2.resize(
            picture, (new_width, new_height), interpolation=method
        )

        def restore(name: str, value: np.ndarray) -> np.ndarray:
            if value.ndim < 2:  # the scale of the camera
                return value
            if value.ndim == 3:
                value = value.transpose(1, 2, 0)
            value = np.ascontiguousarray(value[shown])
            larger = old_height > new_height or old_width > new_width
            if self.meta['task'] == 'pointmap' and larger:
                value = smooth(value)
            method = cv2.INTER_NEAREST if name == 'labels' else cv2.INTER_LINEAR
            value = cv2.resize(value, (old_width, old_height), interpolation=method)
            if name == 'normal':
                length = np.linalg.norm(value, axis=-1, keepdims=True)
                value = value / np.maximum(length, 1e-8)
            return value

        return canvas, restore

    def _crop(
        self, picture: np.ndarray, box: Sequence[float] | None, padding: float
    ) -> tuple[np.ndarray, Restore]:
        height, width = self.size
        if box is None:
            box = (0, 0, picture.shape[1], picture.shape[0])
        left, top, right, bottom = np.float64(box)
        center = np.array([left + right, top + bottom]) / 2
        sides = np.maximum([(right - left) * padding, (bottom - top) * padding], 1)
        aspect = width / height  # the shorter side grows
        if sides[0] > sides[1] * aspect:
            sides[1] = sides[0] / aspect
        else:
            sides[0] = sides[1] * aspect
        zoom = (np.array([width, height]) - 1) / sides
        warp = np.column_stack([np.diag(zoom), zoom * (sides / 2 - center)])
        method = cv2.INTER_LINEAR if zoom.min() < 1 else cv2.INTER_CUBIC
        crop = cv2.warpAffine(picture, warp, (width, height), flags=method)

        def restore(name: str, value: np.ndarray) -> np.ndarray:
            if name != 'keypoints':
                return value
            return value / [width, height] * sides + center - sides / 2

        return crop, restore


def smooth(points: np.ndarray) -> np.ndarray:
    """Blur as the package does before it enlarges a pointmap (H, W, C)."""
    taps = np.exp(-np.float32([1, 0, 1]) / (2 * 0.8**2))
    kernel = np.outer(taps, taps) / taps.sum() ** 2
    for _ in range(4):
        points = cv2.filter2D(points, -1, kernel, borderType=cv2.BORDER_REPLICATE)
    return points


def draw(
    picture: np.ndarray, results: Results, meta: dict[str, Any]
) -> np.ndarray | None:
    """(H, W, 3) BGR drawing of the results; None if there is nothing to draw."""
    if 'labels' in results:
        palette = np.uint8(
            meta['palette'] or np.random.default_rng(0).integers(0, 256, (256, 3))
        )[:, ::-1]
        return cv2.addWeighted(picture, 0.4, palette[results['labels']], 0.6, 0)
    if 'keypoints' in results:
        drawn, points = picture.copy(), np.rint(results['keypoints']).astype(int)
        seen = results['keypoint_scores'] > 0.3
        for one, other in meta['skeleton']:
            if seen[one] and seen[other]:
                cv2.line(
                    drawn, points[one].tolist(), points[other].tolist(), (0, 255, 0)
                )
        for point in points[seen]:
            cv2.circle(drawn, point.tolist(), 2, (0, 0, 255), -1)
        return drawn
    for name, values in results.items():
        if name == 'normal':
            return np.uint8((values[..., ::-1] + 1) * 127.5)
        if name in ('albedo', 'foreground'):
            return np.uint8(values[..., ::-1] * 255)
        if name == 'depth':
            low, high = values.min(), values.max()
            return np.uint8(255 * (high - values) / max(high - low, 1e-6))
    return None


def read(path: Path) -> np.ndarray:
    """A picture as 8-bit BGR, turned by its rotation tag."""
    picture = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
    if picture is None:
        raise ValueError('is not a picture that OpenCV can read')
    return picture


def save(
    path: Path, picture: np.ndarray, results: Results, meta: dict[str, Any]
) -> None:
    """Write what ``main`` says of a picture to PATH.npz, .png and .json."""
    np.savez_compressed(f'{path}.npz', **results)
    drawn = draw(picture, results, meta) if meta['postprocess'] else None
    if drawn is not None:
        cv2.imencode('.png', drawn)[1].tofile(f'{path}.png')
    if 'keypoints' in results:
        names = meta['keypoints'] or range(len(results['keypoints']))
        rows = zip(names, results['keypoints'], results['keypoint_scores'], strict=True)
        people = [
            dict(name=str(name), x=float(x), y=float(y), score=float(score))
            for name, (x, y), score in rows
        ]
        text = json.dumps(dict(size=picture.shape[:2], keypoints=people), indent=1)
        Path(f'{path}.json').write_text(text, encoding='utf-8')


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('model', help='.onnx file of tools/export.py')
    parser.add_argument('pictures', nargs='+')
    parser.add_argument('--out-dir', default='outputs', help='(outputs)')
    parser.add_argument('--size', type=int, nargs=2, metavar=('HEIGHT', 'WIDTH'))
    people = parser.add_mutually_exclusive_group()
    people.add_argument(
        '--box',
        type=float,
        nargs=4,
        metavar=('X1', 'Y1', 'X2', 'Y2'),
        help='pose: the person, in pixels, the same in all pictures',
    )
    people.add_argument(
        '--whole-image', action='store_true', help='pose: each picture is one person'
    )
    parser.add_argument('--provider', default='CPUExecutionProvider')
    args = parser.parse_args()
    paths, out_dir = [Path(path) for path in args.pictures], Path(args.out_dir)
    if len({path.name for path in paths}) < len(paths):
        parser.error('two pictures have one name, and so would their results')
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
        runner = Runner(args.model, args.size, [args.provider])
    except Exception as err:  # onnxruntime has errors of its own
        parser.error(str(err))
    if runner.meta['task'] == 'pose' and not (args.box or args.whole_image):
        parser.error('pose needs the person: give --box or --whole-image')
    failures = 0
    for path in paths:
        try:
            picture = read(path)
        except (OSError, ValueError) as err:
            failures += 1
            sys.stderr.write(f'{path}: {err}\n')
            continue
        start = time.perf_counter()
        results = runner(picture, args.box)
        seconds = time.perf_counter() - start
        save(out_dir / path.name, picture, results, runner.meta)
        sys.stdout.write(f'{path}: {", ".join(results)} in {seconds:.2f} s\n')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
