"""Tiny models of every task, and the files they are saved in."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from safetensors.torch import save_file
from torch import Tensor, nn

from sapiens2_mm.models import Sapiens2
from sapiens2_mm.registry import MODELS

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
# Three grouped blocks between the eight full ones at each end.
DEEP_ARCH = dict(embed_dims=32, num_layers=19, num_heads=4, feedforward_channels=64)
SIZE = (128, 96)
HOSTS = {'pose': 'mmpose', 'seg': 'mmseg'}
_NORM = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])
_SHUFFLE = dict(
    in_channels=32,
    upsample_channels=(16, 16, 8, 8),
    conv_out_channels=(8, 8, 8),
    conv_kernel_sizes=(3, 3, 3),
)


def backbone_cfg(**options) -> dict:
    tiny = dict(arch=ARCH, img_size=SIZE, out_type='featmap')
    return dict(type='sapiens2_mm.Sapiens2', **{**tiny, **options})


def model_cfg(task: str, channels: int | None = None, **backbone) -> Config:
    """The model of a task in its host, with a tiny backbone and head."""
    deconv = dict(deconv_out_channels=(16, 8), deconv_kernel_sizes=(4, 4))
    refine = dict(conv_out_channels=(8, 8), conv_kernel_sizes=(1, 1))
    if task == 'pose':
        head = dict(out_channels=channels or 308, **deconv, **refine)
        head['decoder'] = dict(
            type='mmpose.UDPHeatmap',
            input_size=(96, 128),
            heatmap_size=(24, 32),
            sigma=2,
        )
        model = dict(
            type='mmpose.TopdownPoseEstimator',
            _scope_='mmpose',
            data_preprocessor=dict(
                type='mmpose.PoseDataPreprocessor', bgr_to_rgb=True, **_NORM
            ),
            head=dict(type='sapiens2_mm.Sapiens2PoseHead', in_channels=32, **head),
        )
    elif task == 'seg':
        head = dict(num_classes=channels or 29, **deconv, **refine)
        model = dict(
            type='sapiens2_mm.Sapiens2Segmentor',
            data_preprocessor=dict(
                type='mmseg.SegDataPreProcessor', bgr_to_rgb=True, **_NORM
            ),
            decode_head=dict(
                type='sapiens2_mm.Sapiens2SegHead', in_channels=32, **head
            ),
            test_cfg=dict(mode='whole'),
        )
    else:
        head = dict(_SHUFFLE)
        if task == 'pointmap':
            head.update(
                feature_size=(8, 6),
                scale_conv_out_channels=(16, 8),
                scale_hidden_channels=(8, 4),
            )
        name = f'sapiens2_mm.{task.capitalize()}Head'
        model = dict(
            type='sapiens2_mm.DenseEstimator', decode_head=dict(type=name, **head)
        )
    model['backbone'] = backbone_cfg(**backbone)
    scope = HOSTS.get(task, 'sapiens2_mm')
    return Config(dict(default_scope=scope, model=model))


@pytest.fixture
def build() -> Callable[..., nn.Module]:
    """Build the model of a task; every weight is far from its initial value."""

    def build(task: str, *args, seed: int = 0, **backbone) -> nn.Module:
        if task in HOSTS:
            pytest.importorskip(HOSTS[task])
        return randomized(MODELS.build(model_cfg(task, *args, **backbone).model), seed)

    return build


def randomized(model: nn.Module, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 1 / max(1, parameter[0].numel()) ** 0.5
            parameter.normal_(0, scale, generator=generator)
            if parameter.ndim == 1:
                parameter += 0.5
    return model.eval()


@pytest.fixture
def backbone() -> Sapiens2:
    return randomized(MODELS.build(backbone_cfg()))


def official(model: nn.Module) -> dict[str, Tensor]:
    """The state dict under the names of the published files."""
    return {
        key.replace('head.', 'decode_head.', 1) if key.startswith('head.') else key: v
        for key, v in model.state_dict().items()
    }


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., str]:
    """Write tensors to a file of the wanted name; returns its path."""

    def save(state: dict[str, Tensor], name: str = 'weights.safetensors') -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == '.safetensors':
            save_file({k: v.contiguous() for k, v in state.items()}, path)
        else:
            torch.save(state, path)
        return str(path)

    return save
