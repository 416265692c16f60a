"""Masks of the 29 body parts of Sapiens2 [mmseg]."""

from typing import Any

from sapiens2_mm.registry import DATASETS

from ..metainfo.humans29 import METAINFO, SOURCES
from .seg_dataset import SegDataset


@DATASETS.register_module()
class Humans29Dataset(SegDataset):
    """``SegDataset`` with the 29 classes; 0 is the background and counts.

    ``metainfo=dict(classes=(...))`` chooses some of them, in any order; pixels of the
    others are ignored. For an own class list use ``SegDataset``.

    Args:
        source: vocabulary the masks are written in, mapped to the 29 classes:
            ``'sapiens_v1_28'``, ``'dome34'``, ``'shutterstock52'`` or
            ``'internal33'``. None: the masks hold ids of the 29 classes.
        in_the_wild: see ``SegDataset``.
        **kwargs: arguments of ``SegDataset``.

    Raises:
        ValueError: for an unknown source, or a source next to ``label_map``.
    """

    METAINFO = METAINFO

    def __init__(
        self,
        *args: Any,
        source: str | None = None,
        in_the_wild: bool = False,
        **kwargs: Any,
    ) -> None:
        if source is not None:
            if source not in SOURCES or kwargs.get('label_map') is not None:
                raise ValueError(
                    f'Humans29Dataset: source must be one of {sorted(SOURCES)}, '
                    f'without label_map, got {source!r}'
                )
            kwargs['label_map'] = SOURCES[source]
        super().__init__(*args, in_the_wild=in_the_wild, **kwargs)
