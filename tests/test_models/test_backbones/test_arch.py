"""Size table and the check of a size given as a dict."""

import pytest

from sapiens2_mm.models.backbones.arch import ARCHS, parse_arch

TINY = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)


def test_published_sizes():
    rows = {
        name: (a.embed_dims, a.num_layers, a.num_heads, a.head_dims)
        for name, a in ARCHS.items()
    }
    assert rows == {
        'sapiens2_0.1b': (768, 12, 12, 64),
        'sapiens2_0.4b': (1024, 24, 16, 64),
        'sapiens2_0.8b': (1280, 32, 16, 80),
        'sapiens2_1b': (1536, 40, 24, 64),
        'sapiens2_5b': (2432, 56, 32, 76),
    }
    assert all(a.feedforward_channels == 4 * a.embed_dims for a in ARCHS.values())
    assert [a.num_tokenizer_layers for a in ARCHS.values()] == [2, 2, 3, 4, 6]


@pytest.mark.parametrize(
    ('name', 'first', 'last'),
    [('0.4b', 8, 15), ('0.8b', 8, 23), ('1b', 8, 31), ('5b', 8, 47)],
)
def test_blocks_that_share_keys(name, first, last):
    arch = ARCHS[f'sapiens2_{name}']
    shared = [
        n for n in range(arch.num_layers) if arch.num_kv_heads(n) < arch.num_heads
    ]
    assert shared == list(range(first, last + 1))
    assert arch.num_kv_heads(first) == arch.num_heads // 2


def test_no_block_shares_keys_up_to_16_blocks():
    for num_layers, num_shared in ((1, 0), (12, 0), (16, 0), (17, 1)):
        arch = parse_arch({**TINY, 'num_layers': num_layers})
        kinds = [arch.num_kv_heads(n) for n in range(num_layers)]
        assert kinds.count(1) == num_shared


def test_names_in_any_case_and_dicts():
    assert parse_arch('SAPIENS2_0.4B') is ARCHS['sapiens2_0.4b']
    kept = dict(TINY)
    assert parse_arch(TINY).num_tokenizer_layers == 2
    assert kept == TINY


@pytest.mark.parametrize(
    ('arch', 'message'),
    [
        ('sapiens2_2b', "'sapiens2_2b'; use one of .*'sapiens2_0.1b', .*5b"),
        (None, 'arch None; use one of .* or a dict'),
        (
            {k: v for k, v in TINY.items() if k != 'num_heads'},
            r"positive ints; missing \['num_heads'\], unknown \[\]",
        ),
        ({**TINY, 'mlp_ratio': 4}, r"missing \[\], unknown \['mlp_ratio'\]"),
        ({**TINY, 'num_heads': 0}, 'a dict of positive ints'),
        ({**TINY, 'embed_dims': 32.0}, "'embed_dims': 32.0, .*positive ints"),
        ({**TINY, 'num_layers': True}, 'a dict of positive ints'),
        ({**TINY, 'feedforward_channels': '64'}, 'a dict of positive ints'),
        ({**TINY, 'num_heads': 3}, r'embed_dims 32 .* = 12'),
        ({**TINY, 'embed_dims': 36}, r'embed_dims 36 .* = 8'),
        (
            {**TINY, 'num_layers': 18, 'num_heads': 1},
            'num_heads even if there are more than 16 blocks',
        ),
    ],
)
def test_wrong_arch(arch, message):
    with pytest.raises(ValueError, match=message):
        parse_arch(arch)
