import importlib.util

import pytest
import torch

pytest.importorskip('mmpretrain')


@pytest.fixture
def benchmark(repo_dir):
    path = repo_dir / 'tools' / 'benchmark' / 'pretrain_step.py'
    spec = importlib.util.spec_from_file_location('pretrain_step_benchmark', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SIZES = ['--size', '128', '96', '--local-size', '64', '48', '--layers', '1']


def test_kept_tokens_give_the_same_visible_tokens_at_one_layer(benchmark):
    """Variant (a) differs from the step by what the mask token adds, nothing else."""
    args = benchmark.parse_args(SIZES)
    torch.manual_seed(0)
    model = benchmark.build_model(args, joint=True)
    images, locals_ = torch.randn(2, 3, 128, 96), torch.randn(4, 3, 64, 48)
    mask = model.mask_generator(2, 1, (8, 6))
    patches, cls_tokens = model.encode_views(images, mask, locals_)
    kept = benchmark.KeepsMasked(model)
    patches_a, cls_tokens_a = kept.encode_views(images, mask, locals_)
    assert patches_a.shape == patches.shape and cls_tokens_a.shape == cls_tokens.shape
    torch.testing.assert_close(cls_tokens_a[2:], cls_tokens[2:])  # local views
    # layer scale 1e-4: attention to the mask token changes little
    torch.testing.assert_close(patches_a, patches, rtol=0, atol=1e-2)


@pytest.mark.slow
def test_prints_every_comparison(benchmark, capsys):
    benchmark.main([*SIZES, '--decoder-layers', '1', '--repeats', '1'])
    text = capsys.readouterr().out
    for line in ('(a) / step:', '(b) / reconstruction alone:', 'share', 'per worker'):
        assert line in text
