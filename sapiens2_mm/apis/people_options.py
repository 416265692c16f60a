"""Options of the command line that say where the people are."""

from argparse import ArgumentParser, Namespace
from typing import Any

from .person_detectors import MMDetDetector, MoveNetDetector


def add_people_options(parser: ArgumentParser) -> None:
    """Add ``--boxes``, ``--whole-image``, ``--det`` and the options of detectors."""
    group = parser.add_argument_group(
        'people, for pose', 'found by MoveNet unless one of the first three is given'
    )
    group.add_argument('--boxes', help='COCO-style JSON with their boxes (xywh)')
    group.add_argument(
        '--whole-image', action='store_true', help='one person per picture'
    )
    add_detector_options(group)


def add_detector_options(group: Any) -> None:
    """Add ``--det`` and the thresholds to a parser or a group of it."""
    group.add_argument(
        '--det', nargs=2, metavar=('CONFIG', 'CHECKPOINT'), help='a detector of mmdet'
    )
    group.add_argument(
        '--det-thr', type=float, help='lowest score (MoveNet 0.2, mmdet 0.3)'
    )
    group.add_argument(
        '--nms-thr',
        type=float,
        help='highest IoU of two people (MoveNet 0.5, mmdet 0.65)',
    )
    group.add_argument(
        '--max-people', type=int, help='of a picture, those of the best scores'
    )


def people_of(args: Namespace) -> str | MMDetDetector | MoveNetDetector | None:
    """The ``boxes`` of ``Inferencer`` that the options mean.

    Args:
        args: of ``add_people_options``, with ``device``.

    Raises:
        ValueError: for options that exclude each other; see also the detectors, as for
            other errors.
    """
    options = _thresholds(args)
    if (args.boxes or args.whole_image) and (args.det or options):
        raise ValueError(
            '--det, --det-thr, --nms-thr and --max-people are of a detector; leave out '
            '--boxes and --whole-image'
        )
    return detector_of(args) if args.det or options else args.boxes


def detector_of(args: Namespace) -> MMDetDetector | MoveNetDetector:
    """The detector that the options mean.

    Args:
        args: of ``add_detector_options``, with ``device``.

    Raises:
        ImportError, ValueError: see the detectors, as for other errors.
    """
    options = _thresholds(args)
    if args.det:
        return MMDetDetector(*args.det, args.device, **options)
    return MoveNetDetector(**options)


def _thresholds(args: Namespace) -> dict[str, float | int]:
    options = dict(
        score_thr=args.det_thr, nms_thr=args.nms_thr, max_people=args.max_people
    )
    return {key: value for key, value in options.items() if value is not None}
