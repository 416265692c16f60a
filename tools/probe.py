"""Probe an encoder: train five light decoders on its frozen features, print a table.

``python tools/probe.py work_dirs/RUN/iter_500000.pth --arch sapiens2_1b`` probes the
teacher and the student of a pretraining run; a file with a backbone alone is one row,
and ``random`` one that was not trained. ``python tools/probe.py WORK_DIR --all``
makes a row of every checkpoint of a run, of its teacher if it has one, and marks the
best one.
"""

import argparse
import json
from pathlib import Path

from sapiens2_mm.cfg_options import CfgOptions
from sapiens2_mm.engine import probing

CONFIGS = Path(__file__).parent.parent / 'configs' / 'probe'


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description='Probe an encoder by five tasks')
    parser.add_argument(
        'checkpoint', help="path, URL, hf:// address, 'random', or folder with --all"
    )
    parser.add_argument(
        '--all', action='store_true', help='probe all checkpoints of a work folder'
    )
    parser.add_argument(
        '--model', default='0.4b', help='whose configs to take: 0.4b or tiny'
    )
    parser.add_argument('--arch', help="size of the encoder, if not the config's")
    parser.add_argument(
        '--tasks', nargs='+', choices=probing.TASKS, default=probing.TASKS
    )
    parser.add_argument('--configs', default=CONFIGS, help='folder of the configs')
    parser.add_argument('--data-root', help="data set, if not the configs' own")
    parser.add_argument('--work-dir', default='work_dirs/probe')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=CfgOptions,
        metavar='KEY=VALUE',
        help='override settings of all configs',
    )
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    work_dir = Path(args.work_dir)
    configs = probing.find_configs(args.configs, args.model, args.tasks)
    if args.all:
        encoders = {}
        for path in probing.checkpoints_of(args.checkpoint):
            found = probing.encoders_of(str(path), work_dir / path.stem)
            encoders[path.stem] = next(iter(found.values()))  # the teacher first
    else:
        encoders = probing.encoders_of(args.checkpoint, work_dir)
    rows: dict[str, dict[str, float]] = {}
    for name, checkpoint in encoders.items():
        rows[name] = {}
        for task, path in configs.items():
            cfg = probing.probe_config(
                path,
                checkpoint,
                work_dir / name / task,
                args.arch,
                args.data_root,
                args.cfg_options,
            )
            rows[name] |= probing.run_probe(cfg, task)
            (work_dir / 'table.json').write_text(json.dumps(rows, indent=1))
    best = probing.best_row(rows) if args.all else None
    print(probing.format_table(rows, best))


if __name__ == '__main__':
    main()
