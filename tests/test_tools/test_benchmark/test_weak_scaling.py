import runpy

import pytest


@pytest.fixture
def benchmark(repo_dir):
    return runpy.run_path(str(repo_dir / 'tools/benchmark/weak_scaling.py'))


def test_the_dotted_line_follows_the_cores(benchmark, tmp_path, monkeypatch):
    lines = []
    from matplotlib.axes import Axes

    plot = Axes.plot

    def keep(self, x, y, **kwargs):
        lines.append(list(y))
        return plot(self, x, y, **kwargs)

    monkeypatch.setattr(Axes, 'plot', keep)
    path = tmp_path / 'picture.png'
    benchmark['draw']({1: 2.0, 2: 2.5, 4: 6.0}, 2, str(path))
    assert lines == [[2.0, 2.5, 6.0], [2.0, 2.0, 4.0]]
    assert path.stat().st_size > 5000
