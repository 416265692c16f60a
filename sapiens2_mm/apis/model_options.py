"""Options of the command line that choose models."""

from argparse import ArgumentParser, Namespace

from .inference import Inferencer
from .shared_backbone import share_backbones


def add_model_options(parser: ArgumentParser) -> None:
    """Add ``--task``, ``--size``, ``--model``, and how they run: ``--device`` etc."""
    parser.add_argument(
        '--task', help='such as pose,seg,normal: published models of --size'
    )
    parser.add_argument(
        '--size',
        default='1b',
        help='of the models of --task (1b); such as sapiens-1b for the first Sapiens',
    )
    parser.add_argument(
        '--model',
        nargs='+',
        action='append',
        default=[],
        metavar=('NAME_OR_CONFIG', 'CHECKPOINT'),
        help='name of a published model, or config and checkpoint; may be repeated',
    )
    parser.add_argument('--device', default='cpu', help='such as cuda:0 (cpu)')
    parser.add_argument(
        '--dtype', choices=['fp32', 'bf16', 'fp16'], default='fp32', help='(fp32)'
    )
    parser.add_argument(
        '--compile', action='store_true', help='slow start, then faster pictures'
    )


def load_models(args: Namespace) -> dict[str, Inferencer]:
    """The models of ``add_model_options``; equal backbones are shared.

    Returns:
        Name of the task, with a number if it was taken -> inferencer.

    Raises:
        ValueError: without a model, or for more than a config and a checkpoint; see
            also ``Inferencer``, as for other errors.
    """
    if not args.task and not args.model:
        raise ValueError('give --task or --model')
    if any(len(model) > 2 for model in args.model):
        raise ValueError('--model takes a name, or CONFIG CHECKPOINT; put INPUT first')
    tasks = args.task.split(',') if args.task else []
    inferencers: dict[str, Inferencer] = {}
    family = args.size if '-' in args.size else f'sapiens2-{args.size}'
    for model in [*([f'{family}_{task}'] for task in tasks), *args.model]:
        inferencer = Inferencer(
            *model, device=args.device, dtype=args.dtype, compile=args.compile
        )
        name, number = inferencer.task.name, 1
        while name in inferencers:
            number += 1
            name = f'{inferencer.task.name}_{number}'
        inferencers[name] = inferencer
    share_backbones(list(inferencers.values()))
    return inferencers
