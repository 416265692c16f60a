"""Pictures per second of ``predict_to_folder`` against one picture after the other.

``python tools/benchmark/inference.py --task seg`` predicts generated pictures with a
random model in two ways, which write the same kinds of files: a drawing, the arrays,
one JSON. The plain loop is what one writes with the functions of the hosts, as their
demos and the official scripts do:

- seg: mmseg's ``inference_model`` and ``show_result_pyplot``, without the names that it
  writes into the picture, which take most time; ``np.savez_compressed``;
- pose: mmpose's ``inference_topdown`` and its visualizer, ``np.savez_compressed``;
- normal: ``cv2.imread``, the test pipeline, the model, colors by numpy,
  ``cv2.imwrite``, ``np.savez``.

Both ways run the same model, with the same threads of torch. Printed are pictures/s
and processor time per picture of both, their ratios, and the share of the wall time
outside the model. Wall times need idle cores; of processor times the ratio is right on
a busy machine too, but shows no overlap.
"""

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import cv2
import mmengine
import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from mmengine.logging import MMLogger

from sapiens2_mm.apis import Inferencer, init_model, predict_to_folder

CONFIGS = Path(__file__).parents[2] / 'configs'


def load(task: str, size: str) -> Inferencer:
    """A random model: the tiny one of the task, or its decoder on the 0.1b backbone."""
    pattern = 'tiny*_synthetic-humans' if size == 'tiny' else '0.4b'
    (config,) = (CONFIGS / task).glob(f'sapiens2-{pattern}*.py')
    options: dict[str, Any] = {}
    if size != 'tiny':
        head = 'head' if task == 'pose' else 'decode_head'
        options = {
            'model.backbone.arch': f'sapiens2_{size}',
            f'model.{head}.in_channels': 768,
        }
    return Inferencer(init_model(config, cfg_options=options))


def make_pictures(folder: Path, number: int) -> list[Path]:
    """Smooth JPEGs of 1280 x 960."""
    rng = np.random.default_rng(0)
    paths = [folder / f'{index:03d}.jpg' for index in range(number)]
    for path in paths:
        coarse = rng.integers(0, 256, (16, 12, 3), dtype=np.uint8)
        cv2.imwrite(str(path), cv2.resize(coarse, (960, 1280), interpolation=3))
    return paths


def plain_seg(inferencer: Inferencer, path: Path, out: Path) -> dict[str, Any]:
    from mmseg.apis import inference_model, show_result_pyplot

    result = inference_model(inferencer.model, str(path))
    labels = result.pred_sem_seg.data[0].cpu().numpy()
    show_result_pyplot(
        inferencer.model,
        str(path),
        result,
        show=False,
        with_labels=False,
        save_dir=str(out),
        out_file=str(out / f'{path.stem}.png'),
    )
    cv2.imwrite(str(out / f'{path.stem}_labels.png'), labels.astype(np.uint8))
    np.savez_compressed(out / f'{path.stem}.npz', labels=labels.astype(np.uint8))
    return dict(pixels=np.bincount(labels.ravel()).tolist())


def plain_pose(inferencer: Inferencer, path: Path, out: Path) -> dict[str, Any]:
    from mmpose.apis import inference_topdown
    from mmpose.registry import VISUALIZERS
    from mmpose.structures import merge_data_samples

    model = inferencer.model
    if not hasattr(model, 'visualizer'):
        model.visualizer = VISUALIZERS.build(model.cfg.visualizer)
        model.visualizer.set_dataset_meta(model.dataset_meta)
    result = merge_data_samples(inference_topdown(model, str(path)))
    people = result.pred_instances
    image = cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)
    model.visualizer.add_datasample(
        'result', image, result, draw_gt=False, out_file=str(out / f'{path.stem}.png')
    )
    arrays = dict(keypoints=people.keypoints, keypoint_scores=people.keypoint_scores)
    np.savez_compressed(out / f'{path.stem}.npz', **arrays)
    return {name: values.tolist() for name, values in arrays.items()}


def plain_normal(inferencer: Inferencer, path: Path, out: Path) -> dict[str, Any]:
    image = cv2.imread(str(path))
    data = inferencer.task.pipeline(dict(img=image, img_path=str(path)))
    with torch.no_grad():
        (sample,) = inferencer.model.test_step(pseudo_collate([data]))
    normal = sample.pred_normal.cpu().numpy()
    colors = ((normal.transpose(1, 2, 0) + 1) / 2 * 255).astype(np.uint8)
    picture = np.concatenate([image, colors[..., ::-1]], axis=1)
    cv2.imwrite(str(out / f'{path.stem}.png'), picture)
    np.savez(out / f'{path.stem}.npz', normal=normal)
    return {}


PLAIN = dict(seg=plain_seg, pose=plain_pose, normal=plain_normal)


def plain_loop(inferencer: Inferencer, paths: list[Path], out: Path) -> None:
    """One picture after the other, read, predicted, drawn and written."""
    out.mkdir()
    step = PLAIN[inferencer.task.name]
    records = [dict(step(inferencer, path, out), image=str(path)) for path in paths]
    mmengine.dump(records, str(out / 'predictions.json'))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--task', choices=PLAIN, default='seg', help='(seg)')
    parser.add_argument('--size', choices=['tiny', '0.1b'], default='tiny')
    parser.add_argument('--pictures', type=int, default=16, help='(16)')
    parser.add_argument('--repeats', type=int, default=3, help='best of these (3)')
    parser.add_argument('--threads', type=int, help='of torch (as torch chooses)')
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    MMLogger.get_current_instance().setLevel('ERROR')
    torch.set_num_threads(args.threads or torch.get_num_threads())
    inferencer = load(args.task, args.size)
    forward, inside = inferencer.model.test_step, [0.0]

    def timed(batch: Any) -> list:
        start = time.perf_counter()
        outputs = forward(batch)
        inside[0] += time.perf_counter() - start
        return outputs

    inferencer.model.test_step = timed
    with tempfile.TemporaryDirectory() as folder:
        paths = make_pictures(Path(folder), args.pictures)
        ways = dict(
            plain=lambda paths, out: plain_loop(inferencer, paths, out),
            ours=lambda paths, out: predict_to_folder(
                {args.task: inferencer}, paths, out, whole_image=args.task == 'pose'
            ),
        )
        for way, run in ways.items():  # first calls are slower
            run(paths[:2], Path(folder) / f'{way}_first')
        wall = dict.fromkeys(ways, float('inf'))
        cpu, outside = dict(wall), dict(wall)
        for repeat in range(args.repeats):
            for way, run in ways.items():
                inside[0], start, work = 0.0, time.perf_counter(), time.process_time()
                run(paths, Path(folder) / f'{way}{repeat}')
                seconds = time.perf_counter() - start
                cpu[way] = min(cpu[way], time.process_time() - work)
                outside[way] = min(outside[way], 1 - inside[0] / seconds)
                wall[way] = min(wall[way], seconds)
    for way in ways:
        sys.stdout.write(
            f'{way:5s} {args.pictures / wall[way]:6.2f} pictures/s, processor '
            f'{1000 * cpu[way] / args.pictures:6.1f} ms/picture, '
            f'{outside[way]:.1%} of the time outside the model\n'
        )
    sys.stdout.write(
        f'ours / plain: {wall["plain"] / wall["ours"]:.2f} pictures/s, '
        f'{cpu["ours"] / cpu["plain"]:.2f} processor time\n'
    )


if __name__ == '__main__':
    main()
