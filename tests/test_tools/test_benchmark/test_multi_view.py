import runpy

import numpy as np
import pytest

pytest.importorskip('mmpretrain')


def test_both_ways_make_the_same_kinds_of_views(repo_dir, capsys):
    script = runpy.run_path(repo_dir / 'tools' / 'benchmark' / 'multi_view.py')
    shared = script['compare'].__globals__
    shared['PHOTOS'] = ((160, 120),)
    shared['SIZES'].update({'global': (64, 48), 'local': (32, 24)})
    script['compare'](repeats=1)
    assert 'times as fast' in capsys.readouterr().out
    data = script['cv2'].imencode('.jpg', script['noise'](160, 120))[1].tobytes()
    ours = script['our_views']()(data)
    theirs = [view.numpy() for view in script['torchvision_views']()(data)]
    shapes = [(64, 48, 3)] * 2 + [(32, 24, 3)] * 4
    assert [view.shape for view in ours] == shapes
    assert [np.moveaxis(view, 0, -1).shape for view in theirs] == shapes
