"""Web page that predicts pictures, for people who do not use the shell.

    python tools/app.py --task pose,seg,pointmap --size 1b --device cuda
    python tools/app.py --model CONFIG CHECKPOINT [--model ...] --port 8000

Only this computer reaches the page unless --host says otherwise. Ctrl-C ends it.
"""

import argparse
import signal
import sys
from threading import Event

from sapiens2_mm.apis.model_options import add_model_options, load_models
from sapiens2_mm.apis.people_options import add_detector_options, detector_of


def parse_args() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_model_options(parser)
    add_detector_options(parser)
    parser.add_argument(
        '--host',
        default='127.0.0.1',
        help='address to listen at; 0.0.0.0 lets every computer in (127.0.0.1)',
    )
    parser.add_argument('--port', type=int, help='(the first free one from 7860)')
    parser.add_argument(
        '--max-megabytes', type=float, default=20, help='of an upload (20)'
    )
    parser.add_argument(
        '--max-megapixels', type=float, default=40, help='of a picture (40)'
    )
    return parser, parser.parse_args()


def main() -> int:
    parser, args = parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # deletes the files as Ctrl-C
    try:
        from sapiens2_mm.apis.app import serve
    except ModuleNotFoundError as err:
        parser.error(f'{err}; install sapiens2_mm[app]')
    try:
        inferencers = load_models(args)
        has_pose = any(i.task.name == 'pose' for i in inferencers.values())
        with serve(
            inferencers,
            detector_of(args) if has_pose else None,
            host=args.host,
            port=args.port,
            max_bytes=int(1e6 * args.max_megabytes),
            max_pixels=int(1e6 * args.max_megapixels),
        ) as url:
            print(f'Open {url} in a browser; Ctrl-C ends the page.', flush=True)
            Event().wait()
    except (ImportError, OSError, ValueError) as err:
        parser.error(str(err))
    except KeyboardInterrupt:
        return 0


if __name__ == '__main__':
    sys.exit(main())
