"""Shims that let the OpenMMLab hosts import and run on a current Python stack.

Each runs at the import of the host that needs it (``sapiens2_mm._import_hooks``),
checks whether it is needed at all, and says once in the log what it did.

* mmcv without compiled operators (mmcv-lite): ``mmcv._ext`` becomes a stand-in whose
  operators raise when called, ``nms`` excepted, which torchvision computes.
* transformers 5 and later break the multimodal part of mmpretrain, and with it every
  host that imports mmpretrain: mmpretrain's own placeholders take its place.
* xtcocotools that is absent or built for another numpy: mmpose reads annotation
  files through pycocotools instead.
"""

import importlib
import sys
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


def replace_compiled_ops(mmcv: ModuleType) -> None:
    """Give mmcv-lite an ``mmcv._ext``."""
    if 'mmcv._ext' in sys.modules:
        return
    if PathFinder.find_spec('mmcv._ext', mmcv.__path__) is None:
        stand_in = _OpsStandIn('mmcv._ext')
        # A spec without loader is what mmengine takes as "no compiled mmcv".
        stand_in.__spec__ = ModuleSpec('mmcv._ext', None)
        sys.modules['mmcv._ext'] = stand_in
        _log('mmcv has no compiled operators; using a stand-in (nms by torchvision)')


def disable_multimodal() -> None:
    """Keep mmpretrain from importing models that transformers 5 breaks."""
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


def replace_xtcocotools() -> None:
    """Let pycocotools serve mmpose where xtcocotools cannot."""
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
