"""Take the encoder out of a pretraining checkpoint.

``python tools/export_backbone.py CHECKPOINT OUT.safetensors [--which student]``; the
file fits ``init_cfg=dict(type='Pretrained', checkpoint=...)`` of a backbone.
"""

import argparse

from mmengine.runner.checkpoint import CheckpointLoader

from sapiens2_mm.models.selfsup.export import save_backbone


def main() -> None:
    parser = argparse.ArgumentParser(description='Export a pretrained encoder')
    parser.add_argument('checkpoint', help='of a pretraining run')
    parser.add_argument('out', help='.safetensors file to write')
    parser.add_argument('--which', choices=['teacher', 'student'], default='teacher')
    args = parser.parse_args()
    weights = CheckpointLoader.load_checkpoint(args.checkpoint, map_location='cpu')
    save_backbone(weights['state_dict'], args.out, args.which)


if __name__ == '__main__':
    main()
