"""Peak memory of predicting a large picture, against mmseg's EncoderDecoder.

``python tools/benchmark/seg_predict.py`` predicts a 4000x3000 picture with a tiny model
in whole and in slide mode, each form in a process of its own. It prints the memory on
top of what stood before, and whether the label maps are equal.
"""

import argparse
import hashlib
import multiprocessing
import resource
import sys
import time
import warnings

import sapiens2_mm.registry  # noqa: F401  prepares the import of mmseg

# isort: split
import torch
from mmengine.config import ConfigDict
from mmengine.logging import MMLogger
from mmseg.structures import SegDataSample

from sapiens2_mm.registry import MODELS

FORMS = dict(ours='sapiens2_mm.Sapiens2Segmentor', plain='mmseg.EncoderDecoder')
WINDOW = 512


def build(kind: str, mode: str) -> torch.nn.Module:
    torch.manual_seed(0)
    model = MODELS.build(
        ConfigDict(
            type=kind,
            _scope_='mmseg',
            backbone=dict(
                type='sapiens2_mm.Sapiens2',
                arch=dict(
                    embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64
                ),
                img_size=(256, 192),
                out_type='featmap',
            ),
            decode_head=dict(
                type='sapiens2_mm.Sapiens2SegHead',
                in_channels=32,
                deconv_out_channels=(8, 8, 8, 8),
                conv_out_channels=(8, 8),
            ),
            test_cfg=dict(
                mode=mode, crop_size=(WINDOW, WINDOW), stride=(WINDOW, WINDOW)
            ),
        )
    )
    model.init_weights()
    return model.eval()


@torch.no_grad()
def measure(form: str, mode: str, height: int, width: int) -> tuple[str, float, float]:
    """(hash of the label map, MiB on top, seconds)."""
    warnings.simplefilter('ignore')
    MMLogger.get_current_instance().setLevel('ERROR')
    model = build(FORMS[form], mode)
    network = (256, 192) if mode == 'whole' else (height, width)
    inputs = torch.randn(1, 3, *network)
    meta = dict(ori_shape=(height, width), img_shape=network, pad_shape=network)
    model(inputs[..., :WINDOW, :WINDOW])  # load libraries
    before = _peak()
    start = time.perf_counter()
    (result,) = model.predict(inputs, [SegDataSample(metainfo=meta)])
    seconds = time.perf_counter() - start
    labels = result.pred_sem_seg.data.to(torch.uint8).numpy()
    digest = hashlib.sha256(labels.tobytes()).hexdigest()
    return digest, (_peak() - before) / 2**20, seconds


def _peak() -> int:
    """Largest resident memory of this process so far, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--modes', nargs='+', default=['whole', 'slide'])
    parser.add_argument('--size', type=int, nargs=2, default=(3008, 4000))
    args = parser.parse_args()
    context = multiprocessing.get_context('spawn')
    for mode in args.modes:
        results = {}
        for form in FORMS:
            with context.Pool(1) as pool:
                results[form] = pool.apply(measure, (form, mode, *args.size))
            _, memory, seconds = results[form]
            sys.stdout.write(
                f'{mode:5s} {form:5s} peak {memory:7.1f} MiB  {seconds:6.2f} s\n'
            )
        (a, ours, _), (b, plain, _) = results['ours'], results['plain']
        sys.stdout.write(
            f'{mode}: peak memory, ours / plain: {ours / plain:.2f}, label maps '
            f'{"equal" if a == b else "DIFFER"}\n'
        )


if __name__ == '__main__':
    main()
