"""The shims, each in a fresh process because imports cannot be undone."""

import subprocess
import sys
import textwrap

import pytest


def run_python(code: str) -> str:
    """Run ``code`` in a new interpreter and return what it printed."""
    result = subprocess.run(
        [sys.executable, '-c', textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def test_package_import_is_light():
    out = run_python(
        """
        import sys, time
        start = time.perf_counter()
        import sapiens2_mm
        print(time.perf_counter() - start < 0.3)
        heavy = {'torch', 'mmengine', 'mmcv', 'mmpose', 'mmseg', 'mmpretrain'}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert out.split('\n')[:2] == ['True', '[]']


def test_registry_and_own_classes_import_no_host():
    out = run_python(
        """
        import sys
        from sapiens2_mm.registry import DATASETS, HOOKS, METRICS, MODELS, TRANSFORMS
        from sapiens2_mm.registry import VISUALIZERS
        assert MODELS.get('sapiens2_mm.Sapiens2') is MODELS.get('Sapiens2')
        for registry in (DATASETS, HOOKS, METRICS, TRANSFORMS, VISUALIZERS):
            registry.import_from_location()
        hosts = {'mmpose', 'mmseg', 'mmpretrain', 'mmdet', 'anny'}
        print(sorted(hosts & set(sys.modules)))
        """
    )
    assert out.strip().split('\n')[-1] == '[]'


def test_all_hosts_import_together_with_transformers():
    for host in ('mmpose', 'mmseg', 'mmpretrain', 'mmdet', 'transformers'):
        pytest.importorskip(host)
    out = run_python(
        """
        import transformers
        import sapiens2_mm.registry
        import mmpose.apis, mmseg.apis, mmpretrain.apis, mmdet.apis
        import mmpretrain.models, mmpose.models, mmseg.models
        print('imported')
        """
    )
    assert 'imported' in out


def test_hosts_import_after_the_bare_package():
    pytest.importorskip('mmpose')
    pytest.importorskip('mmseg')
    out = run_python(
        """
        import sapiens2_mm
        import mmpose.apis, mmpose.visualization, mmseg.models
        import sapiens2_mm.registry
        print('imported')
        """
    )
    assert 'imported' in out
    assert out.count('has no compiled operators') <= 1


def test_multimodal_models_of_mmpretrain_say_why_they_are_missing():
    transformers = pytest.importorskip('transformers')
    pytest.importorskip('mmpretrain')
    if int(transformers.__version__.split('.')[0]) < 5:
        pytest.skip('only transformers 5 breaks them')
    out = run_python(
        """
        import sapiens2_mm.registry
        from mmpretrain.registry import MODELS
        try:
            MODELS.build(dict(type='Blip2Caption'))
        except Exception as err:
            print(type(err).__name__, err)
        """
    )
    assert 'multi-modal' in out
    assert out.count('breaks the multimodal models') == 1


def test_stand_in_for_mmcv_ops_has_nms_and_names_missing_ones():
    out = run_python(
        """
        import sys, types
        import sapiens2_mm.compat as compat
        sys.modules.pop('mmcv._ext', None)
        compat.PathFinder = types.SimpleNamespace(find_spec=lambda *_: None)
        compat.replace_compiled_ops(types.SimpleNamespace(__path__=[]))
        import torch
        from mmcv.ops import nms
        boxes = torch.tensor([[0., 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])
        kept = nms(boxes, torch.tensor([0.5, 0.6, 0.1]), 0.5)[1]
        print(kept.tolist())
        from mmcv.ops import roi_align
        try:
            roi_align(torch.rand(1, 1, 4, 4), torch.rand(1, 5), 2, 1.0, 0, 'avg', True)
        except ImportError as err:
            print(err)
        """
    )
    assert '[1, 2]' in out
    assert 'install the full mmcv' in out


def test_compiled_mmcv_wins_over_the_stand_in(tmp_path):
    package = tmp_path / 'mmcv'
    package.mkdir()
    (package / '__init__.py').write_text('')
    (package / '_ext.py').write_text('real = True')
    out = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import sapiens2_mm
        import mmcv, mmcv._ext
        print(mmcv._ext.real)
        """
    )
    assert out.strip() == 'True'


BROKEN = {
    'mmdet': "assert False, 'MMCV==2.3 is used but incompatible'",
    'transformers': "def __getattr__(name): raise TypeError('bad annotation')",
    'xtcocotools': "raise OSError('cannot load libgomp')",
    'pycocotools': "raise ValueError('numpy.dtype size changed')",
    'ftfy': "raise AttributeError('module wcwidth has no attribute')",
    'regex': "raise ImportError('undefined symbol')",
}
USE_ALL_TASKS = """
import mmpose.apis, mmpose.datasets, mmpose.evaluation, mmseg.apis, mmpretrain.models
from sapiens2_mm.registry import DATASETS, MODELS
for name in ('Sapiens2PoseHead', 'Sapiens2SegHead', 'Sapiens2Pretrain'):
    assert MODELS.get(f'sapiens2_mm.{name}') is not None
assert DATASETS.get('sapiens2_mm.Humans308Dataset') is not None
for name in ('mmengine', 'mmpose', 'mmseg'):
    assert MODELS.get('mmpretrain.MAE') is not None
"""


@pytest.mark.parametrize(
    'packages',
    [
        [*BROKEN],
        *(pytest.param([name], marks=pytest.mark.slow) for name in BROKEN),
    ],
    ids=lambda names: '-'.join(names),
)
def test_broken_optional_packages_are_taken_as_absent(packages, tmp_path):
    for host in ('mmpose', 'mmseg', 'mmpretrain'):
        pytest.importorskip(host)
    for name in packages:
        (tmp_path / f'{name}.py').write_text(BROKEN[name])
    # An old enough transformers for mmpretrain to want its multimodal part.
    dist_info = tmp_path / 'transformers-4.40.0.dist-info'
    dist_info.mkdir()
    (dist_info / 'METADATA').write_text('Name: transformers\nVersion: 4.40.0\n')
    if 'transformers' not in packages:
        (tmp_path / 'transformers.py').write_text("raise ImportError('no wheel')")
    out = run_python(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import warnings
        warnings.simplefilter('always')
        sys.stderr = sys.stdout
        import sapiens2_mm
        """
        + textwrap.indent(USE_ALL_TASKS, ' ' * 8)
        + """
        try:
            import mmdet
        except ModuleNotFoundError as err:
            print(repr(err.__cause__))
        """
    )
    for name in packages:
        assert out.count(f'{name} is taken as not installed') == 1, out
    if 'mmdet' in packages:
        assert "AssertionError('MMCV==2.3 is used but incompatible')" in out


def test_hosts_import_without_chumpy():
    pytest.importorskip('mmpose')
    out = run_python(
        """
        import sys
        sys.modules['chumpy'] = None
        import sapiens2_mm.registry
        import mmpose.apis, mmpose.models, mmpose.datasets
        print('imported')
        """
    )
    assert 'imported' in out


def test_missing_host_names_the_extra():
    out = run_python(
        """
        import sys
        class Block:
            def find_spec(self, name, path=None, target=None):
                if name == 'mmpose':
                    raise ModuleNotFoundError("No module named 'mmpose'", name='mmpose')
        sys.meta_path.insert(0, Block())
        from sapiens2_mm.registry import MODELS
        try:
            MODELS.build(dict(type='sapiens2_mm.Sapiens2PoseHead'))
        except ImportError as err:
            print(err)
        """
    )
    assert 'Sapiens2PoseHead needs mmpose; install sapiens2_mm[pose]' in out
