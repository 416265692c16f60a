"""Images and mattes from a list."""

from pathlib import Path
from typing import Any

from mmengine.dataset import BaseDataset

from sapiens2_mm.registry import DATASETS

from ..io.json_file import check_records, load_json, load_names


@DATASETS.register_module()
class MattingListDataset(BaseDataset):
    """Reads ``[{"image": PATH, "mask": PATH}, ...]``, or a text file of RGBA pictures.

    The mask is an alpha matte or an RGBA picture with straight colors. In a text file
    each line is one RGBA picture; its own colors are the image, so use
    ``RandomMatteBackground``. Paths are relative to ``data_root``, if given.

    Args:
        ann_file: ``.json`` or ``.txt``.
        kwargs: see mmengine's ``BaseDataset``.

    Raises:
        ValueError: if the file has another form or no entry; names file and entry.
    """

    def __init__(self, ann_file: str, **kwargs) -> None:
        super().__init__(ann_file=ann_file, **kwargs)

    def load_data_list(self) -> list[dict[str, Any]]:
        path = Path(self.ann_file)
        if path.suffix == '.txt':
            names = load_names(self.ann_file)
            entries = [{'image': name, 'mask': name} for name in names]
        else:
            entries = load_json(self.ann_file)
        check_records(entries, dict(image=str, mask=str), f'{path}: entry')
        if not entries:
            raise ValueError(f'{path} lists no image')
        root = Path(self.data_root or '')
        data_list = []
        for entry in entries:
            data_list.append(
                dict(
                    img_path=str(root / entry['image']),
                    alpha_path=str(root / entry['mask']),
                )
            )
        return data_list
