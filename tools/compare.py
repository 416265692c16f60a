"""Compare models on one data set: a table of metrics, time and memory, and a picture.

    python tools/compare.py --model sapiens-1b_seg --model sapiens2-1b_seg \\
        --data configs/_base_/datasets/public/cihp.py
    python tools/compare.py --model CONFIG CHECKPOINT --model CONFIG CHECKPOINT \\
        --data CONFIG

``--data`` is a config of public data, or that of a model. The table is printed and
written to ``table.txt``, the side-by-side picture to ``comparison.png`` in the folder.
"""

import argparse
from pathlib import Path

from sapiens2_mm.apis.comparison import compare_models, table_of
from sapiens2_mm.cfg_options import CfgOptions


def parse_args() -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        '--model',
        nargs='+',
        action='append',
        required=True,
        metavar=('NAME_OR_CONFIG', 'CHECKPOINT'),
        help='name of a published model, or config and checkpoint; once for each',
    )
    parser.add_argument('--data', required=True, metavar='CONFIG', help='of the data')
    parser.add_argument('--out-dir', default='comparison', help='(comparison)')
    parser.add_argument('--num-pictures', type=int, default=4, help='to draw (4)')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=CfgOptions,
        metavar='KEY=VALUE',
        help='override settings of all models, such as '
        'test_dataloader.dataset.data_root=DIR',
    )
    return parser, parser.parse_args()


def main() -> None:
    parser, args = parse_args()
    try:
        trials = compare_models(
            args.model, args.data, args.out_dir, args.num_pictures, args.cfg_options
        )
    except (ImportError, OSError, ValueError) as err:
        parser.exit(2, f'{parser.prog}: error: {err}\n')
    table = table_of(trials).get_string()
    Path(args.out_dir, 'table.txt').write_text(table + '\n', encoding='utf-8')
    print(table)


if __name__ == '__main__':
    main()
