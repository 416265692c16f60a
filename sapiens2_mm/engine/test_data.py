"""Test a model on the data of another config."""

import copy

from mmengine.config import Config, ConfigDict

from sapiens2_mm.datasets.metainfo.of_config import config_metainfo
from sapiens2_mm.registry import DATASETS


def use_data(cfg: Config, data: Config) -> None:
    """Replace data and metric of a test, and keep how the model sees a picture.

    The steps that load annotations are those of ``data``, all others the model's own,
    in the model's order. Classes are those of the model. A model of other keypoints
    than the data's is scored by their names, see ``Sapiens2CocoDataset``.

    Args:
        cfg: of the model; its ``test_dataloader`` and ``test_evaluator`` change.
        data: with ``test_dataloader`` and ``test_evaluator``, such as one of
            ``configs/_base_/datasets/public``.

    Raises:
        ValueError: if a config has no test, the two are of different tasks, or of
            keypoints or classes that the data cannot be scored by.
    """
    for name, config in (('model', cfg), ('data', data)):
        if 'test_dataloader' not in config or 'test_evaluator' not in config:
            raise ValueError(
                f'the config of the {name}, {config.filename}, needs test_dataloader '
                'and test_evaluator'
            )
    loader = copy.deepcopy(data.test_dataloader)
    own, dataset = cfg.test_dataloader.dataset, loader.dataset
    wanted, found = _task(own.pipeline), _task(dataset.pipeline)
    if wanted != found:
        raise ValueError(
            f'{cfg.filename} tests {_words(wanted)}, and {data.filename} has '
            f'{_words(found)}; choose data of the task of the model'
        )
    dataset.pipeline = _joined(own.pipeline, dataset.pipeline)
    _fit_labels(own, dataset)
    cfg.test_dataloader = loader
    cfg.test_evaluator = copy.deepcopy(data.test_evaluator)


def _name(step: ConfigDict) -> str:
    return step['type'].rpartition('.')[2]


def _loads(step: ConfigDict) -> bool:
    """Whether it loads annotations."""
    name = _name(step)
    return name.startswith('Load') and not name.startswith('LoadImage')


def _task(pipeline: list[ConfigDict]) -> tuple[str, ...]:
    """What tells tasks apart: the packing, and of dense ones what is loaded."""
    loading = [step for step in pipeline if _loads(step)]
    fields = [field for step in loading for field in step.get('fields', [])]
    fields += ['camera' for step in loading if step.get('with_camera')]
    fields += ['alpha' for step in loading if _name(step) == 'LoadMatte']
    return _name(pipeline[-1]), *fields


def _words(task: tuple[str, ...]) -> str:
    return ' '.join(task[1:]) or task[0].removeprefix('Pack').removesuffix('Inputs')


def _joined(own: list[ConfigDict], other: list[ConfigDict]) -> list[ConfigDict]:
    """The steps of ``own``, with the annotations of ``other``."""
    loading = [step for step in other if _loads(step)]
    pipeline: list[ConfigDict] = []
    for step in own:
        if not _loads(step):
            pipeline.append(step)
        elif loading:
            pipeline += loading
            loading = []
    return pipeline


def _fit_labels(own: ConfigDict, dataset: ConfigDict) -> None:
    meta, other = config_metainfo(own), config_metainfo(dataset)
    if meta.get('classes') != other.get('classes'):
        dataset.metainfo = dict(classes=meta['classes'])
    if meta.get('keypoint_id2name') == other.get('keypoint_id2name'):
        return
    if not getattr(DATASETS.get(dataset['type']), 'scored_by_name', False):
        raise ValueError(
            f'the model predicts the keypoints {meta.get("dataset_name")}, and '
            f'{dataset["type"]} has {other.get("dataset_name")}; choose data of the '
            "model's keypoints, or coco.py or coco_wholebody.py of the public data, "
            'which score them by their names'
        )
    dataset.predicts = {key: own[key] for key in ('type', 'metainfo') if key in own}
