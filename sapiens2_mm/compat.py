"""Shims that let the OpenMMLab hosts import and run on a current Python stack.

Each runs at the import of the host that needs it (``sapiens2_mm._import_hooks``),
checks whether it is needed at all, and says once in the log what it did.

* mmcv without compiled operators (mmcv-lite): ``mmcv._ext`` becomes a stand-in whose
  operators raise when called, ``nms`` excepted, which torchvision computes.
* transformers 5 and later, or a broken part of it, break the multimodal part of
  mmpretrain, and with it every host that imports mmpretrain: mmpretrain's own
  placeholders take its place.
* xtcocotools that is absent or built for another numpy: mmpose reads annotation
  files through pycocotools instead.
* ftfy, regex and mmdet, which mmseg and mmpose import for one tokenizer and one head:
  without them these two do not work, all else does.
* OpenCV 5 warps at most 128 channels at once: mmpose's heatmaps go in parts.
* The FLOP counter of mmengine leaves fused attention out, and refuses the two arguments
  that the ``get_flops.py`` of the hosts give; mmpose's models ask for samples to trace.
* mmengine knows the packages of ``_base_ = 'mmpose::...'`` from a list; we join it.
"""

import contextlib
import functools
import importlib
import math
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import version
from pkgutil import resolve_name
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


class _StandIn(ModuleType):
    """A module that can be imported; its functions raise when they are called."""

    def __init__(self, name: str, advice: str, **functions: Any) -> None:
        super().__init__(name)
        self._advice = advice
        # A spec without loader is what mmengine takes as "no compiled mmcv".
        self.__spec__ = ModuleSpec(name, None)
        vars(self).update(functions)

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)

        def missing(*args: Any, **kwargs: Any) -> None:
            raise ImportError(
                f'{self.__name__}.{name} is not available: {self._advice}'
            )

        return missing


def replace_compiled_ops(mmcv: ModuleType) -> None:
    """Give mmcv-lite an ``mmcv._ext``."""
    if 'mmcv._ext' in sys.modules:
        return
    if PathFinder.find_spec('mmcv._ext', mmcv.__path__) is None:
        advice = 'mmcv-lite has no compiled operators; install the full mmcv'
        sys.modules['mmcv._ext'] = _StandIn('mmcv._ext', advice, nms=_nms)
        _log('mmcv has no compiled operators; using a stand-in (nms by torchvision)')


def disable_multimodal(importer: str) -> None:
    """Keep mmpretrain from importing models that would break it."""
    dependency = importlib.import_module('mmpretrain.utils.dependency')
    if not dependency.WITH_MULTIMODAL:
        return
    installed = version('transformers')
    if int(installed.split('.')[0]) < 5:
        with contextlib.suppress(ImportError):
            resolve_name('transformers:PreTrainedModel')
            importlib.import_module('pycocotools.coco')
            return
    dependency.WITH_MULTIMODAL = False
    _log(
        f'transformers {installed} or pycocotools breaks the multimodal models of '
        'mmpretrain; they are disabled, everything else works'
    )


_XTCOCOTOOLS_ADVICE = (
    'this part of mmpose needs xtcocotools, which is absent or was built for another '
    'numpy; install it by `pip install cython "setuptools<81" && pip install '
    '--no-build-isolation --no-binary xtcocotools xtcocotools`, or use '
    'sapiens2_mm.KeypointOKSMetric, which does not need it'
)


def replace_xtcocotools(importer: str) -> None:
    """Let pycocotools serve mmpose where xtcocotools cannot."""
    try:
        importlib.import_module('xtcocotools._mask')
        return
    except ImportError:
        pass
    for name in [n for n in sys.modules if n.split('.')[0] == 'xtcocotools']:
        del sys.modules[name]
    package = sys.modules['xtcocotools'] = ModuleType('xtcocotools')
    package.__path__ = []
    for part in ('coco', 'mask', 'cocoeval'):
        name = f'xtcocotools.{part}'
        module = _StandIn(name, _XTCOCOTOOLS_ADVICE)
        if part != 'cocoeval':
            with contextlib.suppress(ImportError):
                module = importlib.import_module(f'pycocotools.{part}')
        sys.modules[name] = module
        setattr(package, part, module)
    _log('xtcocotools cannot be imported; mmpose reads with pycocotools instead')


def _mmdet_utils() -> dict[str, Any]:
    from mmpose.utils import reduce_mean  # the same function

    return dict(reduce_mean=reduce_mean, ConfigType=dict)


def _regex() -> dict[str, Any]:
    return dict(compile=lambda *_: None, IGNORECASE=0)  # called at mmseg's import


# Module of a host -> what it imports and all else does without: name -> what must work.
_SPARED: dict[str, dict[str, Callable[[], dict[str, Any]]]] = {
    'mmseg.utils.tokenizer': {'ftfy': dict, 'regex': _regex},
    'mmpose.models.heads.hybrid_heads.rtmo_head': {'mmdet.utils': _mmdet_utils},
}


def lend_stand_ins(importer: str) -> None:
    """Let a module of a host be imported without what only it needs."""
    for name, functions in _SPARED[importer].items():
        try:
            importlib.import_module(name)
        except ImportError:
            advice = f'{importer} needs it; install or repair it'
            sys.modules[name] = _StandIn(name, advice, **functions())
            _log(f'{name} cannot be imported; {importer} needs it, nothing else does')


def remove_stand_ins(importer: ModuleType) -> None:
    """Let nobody else take the stand-ins for the real packages."""
    for name in _SPARED[importer.__name__]:
        if isinstance(sys.modules.get(name), _StandIn):
            del sys.modules[name]


def revert_many_heatmaps(structures: ModuleType) -> None:
    """Let mmpose warp more heatmaps at once than OpenCV 5 takes channels."""
    import numpy as np

    revert, most = structures.revert_heatmap, 128

    def revert_heatmap(heatmap: Any, *args: Any, **kwargs: Any) -> Any:
        if heatmap.ndim < 3 or len(heatmap) <= most:
            return revert(heatmap, *args, **kwargs)
        half = len(heatmap) // 2
        parts = (heatmap[:half], heatmap[half:])
        return np.concatenate([revert_heatmap(p, *args, **kwargs) for p in parts])

    structures.revert_heatmap = revert_heatmap


def mend_flop_counter(analysis: ModuleType) -> None:
    """Count fused attention as multiply-adds, as mmengine counts all products.

    ``get_flops.py`` of the hosts gives a batch beside its shape; the batch holds.
    """
    count = analysis.get_model_complexity_info

    def attention(inputs: list[Any], outputs: list[Any]) -> int:
        query, key, value = (each.type().sizes() for each in inputs[:3])
        return math.prod(query[:-1]) * key[-2] * (key[-1] + value[-1])

    @functools.wraps(count)
    def get_model_complexity_info(
        model: Any, input_shape: Any = None, inputs: Any = None, **options: Any
    ) -> dict[str, Any]:
        shape = input_shape if inputs is None else None
        return count(model, shape, inputs, **options)

    handles = analysis.complexity_analysis._DEFAULT_SUPPORTED_FLOP_OPS
    handles.setdefault('aten::scaled_dot_product_attention', attention)
    analysis.get_model_complexity_info = get_model_complexity_info


def spare_data_samples(base: ModuleType) -> None:
    """Let mmpose's models be called with images alone, as their docstring says."""
    base.BasePoseEstimator.forward.__defaults__ = (None, 'tensor')


def read_checkpoints(importer: str) -> None:
    """Register our readers, which a model of ours does when it is built.

    An inferencer reads the checkpoint before that.
    """
    importlib.import_module('sapiens2_mm.registry')


def register_configs(mmengine_config: ModuleType) -> None:
    """Make ``_base_ = 'sapiens2_mm::...'`` and ``mmengine.hub`` find our configs.

    mmengine looks for the folder of a distribution, which an editable install has
    elsewhere; a name that is a module and no distribution it finds by import.
    """
    mmengine_config.MODULE2PACKAGE['sapiens2_mm'] = 'sapiens2_mm.registry'
