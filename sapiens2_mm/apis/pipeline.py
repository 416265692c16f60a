"""The steps of a test pipeline that run on a picture without annotations."""

from typing import Any

from mmcv.transforms import LoadImageFromFile
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import DefaultScope

from sapiens2_mm.datasets.transforms import LoadImage
from sapiens2_mm.registry import TRANSFORMS

# Transforms of the hosts whose class does not tell.
_HOST_STEPS = {
    'LoadAnnotations': 'skip',
    'GenerateTarget': 'refuse',
    'PhotoMetricDistortion': 'refuse',
    'Albu': 'refuse',
}


def inference_pipeline(cfg: Config) -> Compose:
    """The pipeline of ``cfg.test_dataloader`` as it runs at inference.

    The class attribute ``at_inference`` of a transform decides: without it a step
    runs, ``'skip'`` (it reads or needs an annotation) leaves the step out, ``'refuse'``
    (it belongs to training) is an error, as is each step that mmcv knows as random.
    Whatever step reads the file is replaced by ``LoadImage``, which also takes a
    picture that is decoded already.

    Args:
        cfg: of a model; names without prefix are those of its ``default_scope``.

    Raises:
        ValueError: without such a pipeline, or if a step of it belongs to training.
    """
    dataset = (cfg.get('test_dataloader') or {}).get('dataset', {})
    while inner := dataset.get('dataset') or dataset.get('datasets'):  # of a wrapper
        dataset = inner[0] if isinstance(inner, list | tuple) else inner
    if 'pipeline' not in dataset:
        raise ValueError(
            'the config has no test_dataloader.dataset.pipeline, which loads, resizes '
            'and packs a picture; copy that of configs/ for the task'
        )
    # the scope may be that of a model built before, for another host
    with DefaultScope.overwrite_default_scope(cfg.get('default_scope', 'mmengine')):
        steps = [_build(step) for step in dataset['pipeline']]
    return Compose([step for step in steps if step is not None])


def _build(step: dict[str, Any]) -> Any:
    """The transform of a step; None if it is left out."""
    kind = step['type']
    if isinstance(kind, str):
        scope = step.get('_scope_')
        with TRANSFORMS.switch_scope_and_registry(scope) as registry:
            kind = registry.get(kind)
    if kind is not None and issubclass(kind, LoadImageFromFile):
        return LoadImage()
    action = _at_inference(kind)
    if action == 'refuse':
        raise ValueError(
            f'the step {step["type"]} of test_dataloader.dataset.pipeline belongs to '
            'training, it is random or needs ground truth; remove it'
        )
    return None if action == 'skip' else TRANSFORMS.build(step)


def _at_inference(kind: Any) -> str:
    if hasattr(kind, 'at_inference'):
        return kind.at_inference
    is_random = getattr(kind, '_methods_with_randomness', None) or getattr(
        kind, '_avoid_cache_randomness', False
    )
    default = 'refuse' if is_random else 'run'
    return _HOST_STEPS.get(getattr(kind, '__name__', ''), default)
