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
        sys.modules['mmcv._ext'] = compat._OpsStandIn('mmcv._ext')
        import torch
        from mmcv.ops import nms
        boxes = torch.tensor([[0., 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])
        kept = nms(boxes, torch.tensor([0.5, 0.6, 0.1]), 0.5)[1]
        print(kept.tolist())
        from mmcv.ops import roi_align
        try:
            roi_align(torch.rand(1, 1, 4, 4), torch.rand(1, 5), 2, 1.0, 0, 'avg', True)
        except RuntimeError as err:
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


@pytest.mark.parametrize('fault', ['absent', 'built for another numpy'])
def test_mmpose_works_without_xtcocotools(fault):
    pytest.importorskip('mmpose')
    error = (
        "ModuleNotFoundError('no xtcocotools')"
        if fault == 'absent'
        else "ValueError('numpy.dtype size changed')"
    )
    out = run_python(
        f"""
        import sys
        class Block:
            def find_spec(self, name, path=None, target=None):
                if name.split('.')[0] == 'xtcocotools':
                    raise {error}
        sys.meta_path.insert(0, Block())
        import sapiens2_mm.registry
        import mmpose.apis, mmpose.datasets, mmpose.evaluation
        from xtcocotools.coco import COCO
        print(COCO.__module__)
        from xtcocotools.cocoeval import COCOeval
        try:
            COCOeval(None, None)
        except ImportError as err:
            print(err)
        """
    )
    assert 'pycocotools.coco' in out
    assert 'pip install --no-build-isolation --no-binary xtcocotools' in out


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
