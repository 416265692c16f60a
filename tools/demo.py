"""Predict pictures with the model of any task.

``python tools/demo.py CONFIG CHECKPOINT INPUT``; INPUT is a picture or a folder. The
results, one picture each and ``predictions.json``, are written to the output folder.
The exit code is 1 if a picture could not be read.
"""

import argparse
import sys

from sapiens2_mm.apis import init_model


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('config', help='path of the config file, or a model name')
    parser.add_argument('checkpoint', help='weights: a path or hf:// address')
    parser.add_argument('input', help='a picture, or a folder of pictures')
    parser.add_argument(
        '--out-dir', default='outputs', help='folder of the results (outputs)'
    )
    parser.add_argument('--device', default='cpu', help='such as cuda:0 (cpu)')
    parser.add_argument(
        '--boxes',
        help='pose: COCO-style JSON with the boxes of the people (xywh); without it '
        'each whole picture is taken as one person',
    )
    parser.add_argument(
        '--ply', action='store_true', help='pointmap: write point clouds too'
    )
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    model = init_model(args.config, args.checkpoint, args.device)
    kinds = {base.__name__ for base in type(model).__mro__}
    if 'BasePoseEstimator' in kinds:
        from sapiens2_mm.apis.pose_folder import keypoints_to_folder

        failures = keypoints_to_folder(model, args.input, args.out_dir, args.boxes)
    elif 'BaseSegmentor' in kinds:
        from sapiens2_mm.apis.seg_folder import segment_to_folder

        failures = segment_to_folder(model, args.input, args.out_dir)
    else:
        from sapiens2_mm.apis.dense_folder import predict_to_folder

        failures = predict_to_folder(model, args.input, args.out_dir, args.ply)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
