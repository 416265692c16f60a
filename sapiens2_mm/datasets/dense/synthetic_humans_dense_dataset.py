"""Dense annotations of the synthetic humans."""

from pathlib import Path
from typing import Any

from mmengine.dataset import BaseDataset

from sapiens2_mm.registry import DATASETS

from ..io.json_file import check_record, check_records, load_json

DEPTH_STEP = 2e-4  # meters of one step of the depth files


@DATASETS.register_module()
class SyntheticHumansDenseDataset(BaseDataset):
    """Normals, depth, albedo and cameras of the synthetic humans, for every task.

    A pixel is valid where the segmentation is not background; the same serves as a
    hard matte (``LoadMatte(binary=True)``). Albedo is stored with
    gamma, as the reference takes it; normals and depth are 16-bit PNG.

    Args:
        data_root: the folder that ``projects/synthetic_humans`` wrote.
        ann_file: ``annotations/train.json`` or ``annotations/val.json``.
        kwargs: see mmengine's ``BaseDataset``.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if the annotation file cannot be read, lists no image, or one
            without camera.
    """

    def __init__(self, data_root: str, ann_file: str, **kwargs) -> None:
        super().__init__(data_root=data_root, ann_file=ann_file, **kwargs)

    def load_data_list(self) -> list[dict[str, Any]]:
        root = Path(self.data_root)
        content = load_json(self.ann_file)
        check_record(content, dict(images=list), self.ann_file)
        images = content['images']
        fields = dict(file_name=str, camera=dict)
        check_records(images, fields, f'{self.ann_file}: image')
        if not images:
            raise ValueError(f'{self.ann_file} lists no image')
        data_list = []
        for image in images:
            name = Path(image['file_name']).stem
            camera = image['camera']
            data_list.append(
                dict(
                    img_path=str(root / image['file_name']),
                    mask_path=str(root / 'seg' / f'{name}.png'),
                    alpha_path=str(root / 'seg' / f'{name}.png'),
                    normal_path=str(root / 'normal' / f'{name}.png'),
                    depth_path=str(root / 'depth' / f'{name}.png'),
                    albedo_path=str(root / 'albedo' / f'{name}.png'),
                    depth_scale=DEPTH_STEP,
                    camera_matrix=[
                        [camera['fx'], 0, camera['cx']],
                        [0, camera['fy'], camera['cy']],
                        [0, 0, 1],
                    ],
                )
            )
        return data_list
