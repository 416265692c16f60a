from sapiens2_mm.datasets.metainfo.humans29 import CLASS_WEIGHTS, METAINFO, SOURCES


def test_table_of_29_classes():
    names = METAINFO['classes']
    assert len(names) == len(CLASS_WEIGHTS) == len(set(METAINFO['palette'])) == 29
    assert names[:3] == ('Background', 'Apparel', 'Eyeglass')
    assert names[28] == 'Tongue'
    limb = (4, 4, 2, 2, 6, 10, 3, 3)  # foot to upper leg, left then right
    weights = (0.1, 10, 10, 3, 2, *limb, 1, *limb, 1, 1, *(10,) * 5)
    assert weights == CLASS_WEIGHTS
    pairs = [(names.index(a), names.index(b)) for a, b in METAINFO['swap_classes']]
    assert pairs == [(left, left + 9) for left in range(5, 13)]
    for a, b in METAINFO['swap_classes']:
        assert a.replace('Left', 'Right') == b
    sided = [n for n in names if n.startswith(('Left', 'Right'))]
    assert sorted(sided) == sorted(n for p in METAINFO['swap_classes'] for n in p)


def test_sources():
    sizes = {name: len(table) for name, table in SOURCES.items()}
    assert sizes == dict(sapiens_v1_28=28, dome34=34, shutterstock52=52, internal33=33)
    for table in SOURCES.values():
        assert set(table.values()) <= {*range(29), 255}
    assert SOURCES['sapiens_v1_28'] == {0: 0, 1: 1, **{i: i + 1 for i in range(2, 28)}}
    assert SOURCES['dome34'][33] == 28 and SOURCES['dome34'][7] == 255
    assert SOURCES['internal33'][17] == 255 and SOURCES['shutterstock52'][51] == 0
