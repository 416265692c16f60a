"""Predict pictures with the models of one or several tasks.

    python tools/demo.py photos --task pose,seg,normal
    python tools/demo.py photos --task pose --boxes people.json
    python tools/demo.py photos --task pose --det CONFIG CHECKPOINT
    python tools/demo.py photo.jpg --model sapiens2-1b_seg
    python tools/demo.py 'photos/*.jpg' --model CONFIG CHECKPOINT --whole-image
    python tools/demo.py clip.mp4 --task pose --smooth

Each task has a folder of its name in the output folder. The exit code is 0 if every
picture has a result, also one of nobody, 1 if some have none, 130 after Ctrl-C.
"""

import argparse
import sys

from sapiens2_mm.apis import predict_to_folder
from sapiens2_mm.apis.model_options import add_model_options, load_models
from sapiens2_mm.apis.people_options import add_people_options, people_of
from sapiens2_mm.datasets.metainfo.keypoint_sets import KEYPOINT_SETS


def parse_args() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        'input',
        help='a picture, a video, a folder of pictures, a quoted pattern such as '
        "'*.jpg', or the number of a camera, which Ctrl-C ends",
    )
    add_model_options(parser)
    parser.add_argument(
        '--out-dir', default='outputs', help='folder of the results (outputs)'
    )
    parser.add_argument(
        '--save',
        default='json,png,npz',
        help='some of json,png,npz,ply,coco (json,png,npz)',
    )
    add_people_options(parser)
    parser.add_argument(
        '--keypoints',
        choices=KEYPOINT_SETS,
        help='pose: write these keypoints in place of those of the model',
    )
    parser.add_argument(
        '--no-track',
        action='store_true',
        help='pose: do not number the people of a video',
    )
    parser.add_argument(
        '--smooth',
        action='store_true',
        help='pose: smooth the keypoints of each person of a video',
    )
    parser.add_argument('--batch-size', type=int, default=1, help='(1)')
    return parser, parser.parse_args()


def main() -> int:
    parser, args = parse_args()
    try:
        boxes = people_of(args)
        summary = predict_to_folder(
            load_models(args),
            int(args.input) if args.input.isdecimal() else args.input,
            args.out_dir,
            save=args.save.split(','),
            boxes=boxes,
            whole_image=args.whole_image,
            batch_size=args.batch_size,
            keypoints=args.keypoints,
            track=False if args.no_track else None,
            smooth=args.smooth,
        )
    except (ImportError, OSError, ValueError) as err:
        parser.exit(2, f'{parser.prog}: error: {err}\n')
    except KeyboardInterrupt:
        return 130
    return 1 if summary.failures else 0


if __name__ == '__main__':
    sys.exit(main())
