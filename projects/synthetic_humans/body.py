"""The parametric body: anny's MakeHuman rig, its cache and its forward pass.

World frame of all vertices and bones: X to the subject's left, Y backwards,
Z up, meters. The rest pose is an A-pose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from filelock import FileLock

from .classes import REGION_ID, REGIONS, bone_region
from .environment import COMPACT_MODEL, cache_dir, require_dependencies


def _build_anny() -> torch.nn.Module:
    """Build or load anny's body; the first build needs 3.7 GB and about 70 s.

    Only one process builds at a time. The intermediate files that this very
    build wrote and that no later start reads (0.9 GB) are deleted.
    """
    import anny

    folder = cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / 'sapiens2_mm.lock'):
        before = set(folder.glob('**/*.safetensors'))
        model = anny.Anny(
            rig='makehuman',
            topology='makehuman-full',
            facial_actions='all',
            phenotypes='all',
            local_changes='none',
        )
        keep = before | set(folder.glob(COMPACT_MODEL))
        for path in set(folder.glob('**/*.safetensors')) - keep:
            path.unlink()
    return model.to(dtype=torch.float32).eval()


@dataclass
class PosedBody:
    """One posed person.

    Attributes:
        vertices: (19158, 3) in the order of MakeHuman's base mesh.
        bone_heads: (J, 3) joint positions.
        bone_tails: (J, 3) far ends of the bones.
    """

    vertices: np.ndarray
    bone_heads: np.ndarray
    bone_tails: np.ndarray


class BodyModel:
    """anny's body with the MakeHuman rig (163 bones) and 52 facial actions.

    Attributes:
        canonical: rest pose of one fixed average adult; labels, garment borders
            and patterns are functions of its vertex positions.
        region_weights: (19158, 14) skin weights summed per body region.
        jaw_motion: (19158,) meters that ``jawOpen`` moves a vertex.

    Raises:
        ImportError: if anny is not installed.
    """

    def __init__(self) -> None:
        require_dependencies()
        self.model = _build_anny()
        self.bones = list(self.model.bone_labels)
        self.bone_index = {name: i for i, name in enumerate(self.bones)}
        average = dict.fromkeys(self.model.phenotype_labels, 0.5)
        average |= {'age': 0.67, 'african': 1 / 3, 'asian': 1 / 3, 'caucasian': 1 / 3}
        rest = np.tile(np.eye(4), (len(self.bones), 1, 1))
        self.canonical = self.pose(rest, average)
        jaw_open = self.pose(rest, average, {'jawOpen': 1.0}).vertices
        self.jaw_motion = np.linalg.norm(jaw_open - self.canonical.vertices, axis=1)
        self.region_weights = self._region_weights()

    def _region_weights(self) -> np.ndarray:
        weights = self.model.vertex_bone_weights.numpy()
        indices = self.model.vertex_bone_indices.numpy()
        region_of = np.array([REGION_ID[bone_region(b)] for b in self.bones])
        sums = np.zeros((len(weights), len(REGIONS)), np.float32)
        rows = np.arange(len(weights))
        for k in range(weights.shape[1]):
            np.add.at(sums, (rows, region_of[indices[:, k]]), weights[:, k])
        return sums

    def joint(self, bone: str) -> np.ndarray:
        """(3,) canonical head of a bone."""
        return self.canonical.bone_heads[self.bone_index[bone]]

    @torch.no_grad()
    def pose(
        self,
        bone_rotations: np.ndarray,
        phenotype: dict[str, float],
        facial_actions: dict[str, float] | None = None,
    ) -> PosedBody:
        """Vertices and joints of a pose.

        Args:
            bone_rotations: (J, 4, 4), each bone's own rotation in the axes of
                the world frame at rest.
            phenotype: shape values in [0, 1] by anny's names.
            facial_actions: face values in [0, 1] by anny's names.
        """
        out = self.model(
            pose_parameters=torch.tensor(bone_rotations[None], dtype=torch.float32),
            phenotype_kwargs=_tensors(phenotype),
            facial_actions=_tensors(facial_actions or {}),
            pose_parameterization='local-ref',
        )
        poses = out['bone_poses'][0].double().numpy()
        rest = out['rest_bone_poses'][0].double().numpy()
        tails = out['rest_bone_tails'][0].double().numpy()
        tails = np.concatenate([tails, np.ones((len(tails), 1))], axis=1)
        moved = poses @ np.linalg.inv(rest) @ tails[..., None]
        return PosedBody(
            vertices=out['vertices'][0].numpy(),
            bone_heads=poses[:, :3, 3],
            bone_tails=moved[:, :3, 0],
        )


def _tensors(values: dict[str, float]) -> dict[str, torch.Tensor]:
    return {k: torch.tensor([v], dtype=torch.float32) for k, v in values.items()}
