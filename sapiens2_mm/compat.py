"""Shims that let the OpenMMLab hosts import and run on a current Python stack.

``install()`` is called when ``sapiens2_mm`` is imported. It only places a finder on
``sys.meta_path``; each shim runs right before the host that needs it is imported,
checks whether it is needed at all, and says once in the log what it did.

* mmcv without compiled operators (mmcv-lite): ``mmcv._ext`` becomes a stand-in whose
  operators raise when called, ``nms`` excepted, which torchvision computes.
* transformers 5 and later break the multimodal part of mmpretrain, and with it every
  host that imports mmpretrain: mmpretrain's own placeholders take its place.
* xtcocotools that is absent or built for another numpy: mmpose reads annotation
  files through pycocotools instead.
"""

import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any


def _log(message: str) -> None:
    from mmengine.logging import print_log

    print_log(f'sapiens2_mm.compat: {message}', logger='current')


def _nms(
    boxes: Any, scores: Any, iou_threshold: float, offset: int = 0, **_: Any
) -> Any:
    """``mmcv._ext.nms``: indices of the kept boxes, best first."""
    from torchvision.ops import nms

    if offset:  # mmcv's offset 1 counts the last pixel as inside the box
        boxes = boxes.clone()
        boxes[:, 2:] += offset
    return nms(boxes, scores.to(boxes.dtype), float(iou_threshold))


class _OpsStandIn(ModuleType):
    """A module in place of ``mmcv._ext``; every attribute is an operator."""

    nms = staticmethod(_nms)

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)

        def missing_op(*args: Any, **kwargs: Any) -> None:
            raise RuntimeError(
                f'mmcv operator {name!r} is not available: mmcv-lite is installed, '
                'which has no compiled operators; install the full mmcv'
            )

        return missing_op


def _prepare_mmcv() -> None:
    spec = PathFinder.find_spec('mmcv')
    folders = spec.submodule_search_locations if spec else None
    if folders and PathFinder.find_spec('mmcv._ext', folders) is None:
        stand_in = _OpsStandIn('mmcv._ext')
        # A spec without loader is what mmengine takes as "no compiled mmcv".
        stand_in.__spec__ = ModuleSpec('mmcv._ext', None)
        sys.modules['mmcv._ext'] = stand_in
        _log('mmcv has no compiled operators; using a stand-in (nms by torchvision)')


def _prepare_mmpretrain_models() -> None:
    try:
        major = int(version('transformers').split('.')[0])
    except PackageNotFoundError:
        return
    if major >= 5:
        dependency = importlib.import_module('mmpretrain.utils.dependency')
        if dependency.WITH_MULTIMODAL:
            dependency.WITH_MULTIMODAL = False
            _log(
                f'transformers {version("transformers")} breaks the multimodal models '
                'of mmpretrain; they are disabled, everything else works'
            )


class _NeedsXtcocotools:
    """Stands for ``xtcocotools.cocoeval.COCOeval``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise ImportError(
            'this metric of mmpose needs xtcocotools, which is absent or was built '
            'for another numpy; install it by `pip install cython "setuptools<81" && '
            'pip install --no-build-isolation --no-binary xtcocotools xtcocotools`, '
            'or use sapiens2_mm.KeypointOKSMetric, which does not need it'
        )


def _prepare_mmpose() -> None:
    try:
        importlib.import_module('xtcocotools._mask')
        return
    except (ImportError, ValueError) as err:  # ValueError: numpy ABI mismatch
        reason = str(err)
    for name in [n for n in sys.modules if n.split('.')[0] == 'xtcocotools']:
        del sys.modules[name]
    package = ModuleType('xtcocotools')
    package.__path__ = []
    cocoeval = ModuleType('xtcocotools.cocoeval')
    cocoeval.COCOeval = _NeedsXtcocotools
    sys.modules['xtcocotools'] = package
    sys.modules['xtcocotools.cocoeval'] = package.cocoeval = cocoeval
    for part in ('coco', 'mask'):
        module = importlib.import_module(f'pycocotools.{part}')
        sys.modules[f'xtcocotools.{part}'] = module
        setattr(package, part, module)
    _log(f'xtcocotools cannot be used ({reason}); reading with pycocotools instead')


class _BeforeHost(MetaPathFinder):
    """Runs a shim when its host is about to be imported; finds nothing itself."""

    def __init__(self) -> None:
        self.shims: dict[str, Callable[[], None]] = {
            'mmcv': _prepare_mmcv,
            'mmpretrain.models': _prepare_mmpretrain_models,
            'mmpose': _prepare_mmpose,
        }

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        shim = self.shims.pop(fullname, None)
        if shim is not None:
            shim()
        return None


def install() -> None:
    """Prepare for the import of mmcv, mmpretrain and mmpose. Safe to call again."""
    if any(isinstance(finder, _BeforeHost) for finder in sys.meta_path):
        return
    finder = _BeforeHost()
    if 'mmcv' in sys.modules:  # imported before us; its operators may still come
        finder.find_spec('mmcv')
    sys.meta_path.insert(0, finder)
