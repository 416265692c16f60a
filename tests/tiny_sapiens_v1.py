"""The first Sapiens in small, as the hosts build it: what official files come from.

Backbone: mmpretrain's. Head: mmpose's heatmap head with InstanceNorm and SiLU in place
of BatchNorm and ReLU, which has the official names but for the last layer.
"""

import pytest
import torch
from mmengine.config import Config
from torch import nn

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64)
SIZE = (64, 48)
# task -> (config, channels of deconvolutions, of convolutions, of output, padding)
TASKS = {
    'pose': ('8xb4-20k_humans308', (8, 8), (8, 8), 308, 2),
    'pose-coco': ('_coco-1024', (8, 8), (8, 8), 17, 2),
    'pose-coco-wholebody': ('_coco-wholebody', (8, 8), (8, 8), 133, 2),
    'seg': ('humans28', (8, 8, 8), (8, 8, 8), 28, 'corner'),
    'normal': ('normal-deconv', (8, 8, 8), (8, 8, 8), 3, 2),
    'depth': ('depth-deconv', (4, 4, 4, 4), (4, 4), 1, 'corner'),
}


def small_config(root, task: str) -> Config:
    """The released config of a task, smaller in every size."""
    name, deconv, conv, _, _ = TASKS[task]
    (path,) = (root / 'configs' / 'sapiens_v1').glob(f'sapiens-0.3b_*{name}*.py')
    cfg = Config.fromfile(path)
    _shrink(cfg._cfg_dict)
    cfg.model.backbone.arch = ARCH
    head = cfg.model.head if task.startswith('pose') else cfg.model.decode_head
    head.update(in_channels=32, deconv_out_channels=deconv, conv_out_channels=conv)
    return cfg


def _shrink(node) -> None:
    """A sixteenth of every size, (height, width) or the other way round."""
    sizes = {'(1024, 768)': SIZE, '(768, 1024)': SIZE[::-1], '(192, 256)': (12, 16)}
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, list | tuple) and str(tuple(value)) in sizes:
            node[key] = sizes[str(tuple(value))]
        elif isinstance(value, dict | list):
            _shrink(value)


class Reference(nn.Module):
    """What the hosts make of an official file; ``forward`` gives the head's map."""

    def __init__(self, task: str) -> None:
        from mmpose.models import HeatmapHead
        from mmpretrain.models import VisionTransformer

        super().__init__()
        _, deconv, conv, channels, padding = TASKS[task]
        self.backbone = VisionTransformer(
            ARCH,
            img_size=SIZE,
            out_type='featmap',
            with_cls_token=False,
            patch_cfg=dict(padding=padding),
        )
        head = HeatmapHead(
            32,
            channels,
            deconv_out_channels=deconv,
            deconv_kernel_sizes=[4] * len(deconv),
            conv_out_channels=conv,
            conv_kernel_sizes=[1] * len(conv),
            loss=dict(type='mmpose.KeypointMSELoss'),
        )
        for layers in (head.deconv_layers, head.conv_layers):
            for index, layer in enumerate(layers):
                if isinstance(layer, nn.BatchNorm2d):
                    layers[index] = nn.InstanceNorm2d(layer.num_features)
                elif isinstance(layer, nn.ReLU):
                    layers[index] = nn.SiLU()
        self.is_pose = task.startswith('pose')
        if not self.is_pose:
            head.conv_seg, head.final_layer = head.final_layer, nn.Identity()
        self.add_module('head' if self.is_pose else 'decode_head', head)
        generator = torch.Generator().manual_seed(0)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.2, generator=generator)
        self.eval()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        head = self.head if self.is_pose else self.decode_head
        x = head(self.backbone(images))
        return x if self.is_pose else head.conv_seg(x)


@pytest.fixture(params=TASKS)
def task(request) -> str:
    for host in ('mmpretrain', 'mmpose', 'mmseg'):
        pytest.importorskip(host)
    return request.param
