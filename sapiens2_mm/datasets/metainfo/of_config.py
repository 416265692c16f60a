"""Metainfo of a dataset, from its config alone."""

import copy
from collections.abc import Mapping
from typing import Any

from sapiens2_mm.registry import DATASETS


def config_metainfo(dataset: Mapping | None) -> dict[str, Any]:
    """Class names, keypoint names and so on, without reading data.

    Args:
        dataset: config of a dataset, or of a wrapper, whose first part counts; a name
            without prefix is one of the current default scope.

    Returns:
        Parsed metainfo; empty without a dataset.
    """
    while dataset is not None and 'type' in dataset:
        # RepeatDataset and the like hold one data set, ConcatDataset several
        inner = dataset.get('dataset') or dataset.get('datasets')
        if inner is None:
            with DATASETS.switch_scope_and_registry(dataset.get('_scope_')) as registry:
                cls = registry.get(dataset['type'])
            load = getattr(cls, '_load_metainfo', lambda metainfo: metainfo or {})
            return load(copy.deepcopy(dataset.get('metainfo')))
        dataset = inner[0] if isinstance(inner, list | tuple) else inner
    return {}
