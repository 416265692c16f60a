"""Print configs as they are after inheritance, one setting a line, sorted.

A line is ``PATH = VALUE``, with PATH as ``--cfg-options`` takes it. For two configs,
``diff <(python tools/print_config.py A) <(python tools/print_config.py B)``.
"""

import argparse
from collections.abc import Iterator

from mmengine.config import Config

from sapiens2_mm.cfg_options import CfgOptions


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Print resolved configs')
    parser.add_argument('configs', nargs='+', help='paths of config files')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=CfgOptions,
        metavar='KEY=VALUE',
        help='override settings of all configs',
    )
    return parser.parse_args()


def settings(node, path: str = '') -> Iterator[str]:
    """Lines ``path = value`` of all values below ``node``."""
    prefix = f'{path}.' if path else ''
    if isinstance(node, dict) and node:
        for key in sorted(node, key=str):
            yield from settings(node[key], f'{prefix}{key}')
    elif isinstance(node, list) and any(isinstance(item, dict | list) for item in node):
        for i, item in enumerate(node):
            yield from settings(item, f'{prefix}{i}')
    else:
        yield f'{path} = {node!r}'


def main() -> None:
    args = parse_args()
    for path in args.configs:
        cfg = Config.fromfile(path)
        if args.cfg_options:
            cfg.merge_from_dict(args.cfg_options)
        if len(args.configs) > 1:
            print(f'# {path}')
        print('\n'.join(settings(cfg._cfg_dict.to_dict())))


if __name__ == '__main__':
    main()
