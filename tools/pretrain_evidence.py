"""What pretraining teaches, compared at equal processor time.

Renders synthetic people, pretrains tiny encoders on the train split with three seeds,
and measures linear probes on frozen features: ``table.md``, ``curves.png`` and
``result.json`` in OUT. ``python tools/pretrain_evidence.py work_dirs/evidence``; runs
that were finished are kept.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from sapiens2_mm.engine.evidence import report
from sapiens2_mm.engine.evidence.experiment import Settings, run_all

ROOT = Path(__file__).parent.parent
QUICK = dict(seconds=1.0, seeds=(1, 2), shares=(0, 1), probe_iters=40)


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description='Compare pretraining arms at equal processor time',
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument('out', type=Path, help='folder of data and results')
    parser.add_argument('--num-train', type=int, default=512, help='train images')
    parser.add_argument('--num-test', type=int, default=256, help='test images')
    parser.add_argument(
        '--seconds', type=float, default=200, help='processor time of a pretraining'
    )
    parser.add_argument('--probe-iters', type=int, default=200, help='steps of a probe')
    parser.add_argument('--workers', type=int, default=2, help='processes')
    parser.add_argument(
        '--quick', action='store_true', help='a few steps on a few images, for tests'
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    num_train, num_test = (40, 16) if args.quick else (args.num_train, args.num_test)
    data_root = args.out.resolve() / 'data'
    render = [sys.executable, '-m', 'projects.synthetic_humans', str(data_root)]
    render += ['--num-train', str(num_train), '--num-val', str(num_test)]
    render += ['--size', '128x96', '--workers', str(args.workers)]
    subprocess.run(render, cwd=ROOT, check=True)
    own = dict(seconds=args.seconds, probe_iters=args.probe_iters)
    options = QUICK if args.quick else own
    settings = Settings(str(data_root), str(ROOT / 'configs/pretrain'), **options)
    runs = run_all(settings, args.out / 'runs', args.workers)

    found = report.estimates(runs, settings)
    compared = report.differences(runs, settings)
    training = report.training_of(runs)
    table = report.format_tables(found, compared, training)
    (args.out / 'table.md').write_text(table + '\n')
    report.draw_curves(found, settings, args.out / 'curves.png')
    result = dict(
        settings=asdict(settings),
        metrics=found,
        differences=compared,
        training=training,
        rates={
            row: {f'{s:g}, {f:g}': rates for (s, f), rates in keys.items()}
            for run in runs.values()
            for row, keys in run.rates.items()
        },
    )
    text = json.dumps(result, default=asdict, indent=1)
    (args.out / 'result.json').write_text(text)
    print(table)


if __name__ == '__main__':
    main()
