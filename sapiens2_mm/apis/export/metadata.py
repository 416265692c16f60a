"""What an exported file says about itself."""

from typing import Any

import torch
from torch import nn

import sapiens2_mm

from ..pipeline import inference_pipeline
from .graph import Graph

KEY = 'sapiens2_mm'
_ABOUT = {
    'features': 'of the backbone',
    'heatmaps': '(B, K, h, w)',
    'keypoints': '(B, K, 2) x and y in pixels of the input',
    'keypoint_scores': '(B, K)',
    'logits': '(B, classes, h, w)',
    'labels': '(B, H, W) class ids',
    'scores': '(B, H, W) probability of the class, 0 to 1',
    'normal': '(B, 3, H, W) unit vectors: X right, Y down, Z forward',
    'pointmap': '(B, 3, H, W) X, Y, Z in meters: X right, Y down, Z forward',
    'depth': '(B, 1, H, W) Z in meters; of a depth model relative, 0 nearest',
    'scale': '(B, 1) canonical focal length / fx of the input',
    'albedo': '(B, 3, H, W) RGB, 0 to 1',
    'foreground': '(B, 3, H, W) RGB multiplied by alpha, 0 to 1',
    'alpha': '(B, 1, H, W) opacity, 0 to 1',
}


def metadata(
    graph: Graph,
    outputs: dict[str, torch.Tensor],
    size: tuple[int, int],
    dynamic: tuple[str, ...],
) -> dict[str, Any]:
    """All that a caller needs to use the file without the package; plain JSON.

    Args:
        graph: that is exported.
        outputs: of the example.
        size: (height, width) of the input.
        dynamic: sides of the input that may change, of ``'batch'`` and ``'size'``.
    """
    normalize = graph.normalize
    image = dict(
        name='images',
        layout='NHWC uint8' if graph.postprocess else 'NCHW float32',
        channel_order=(
            graph.channel_order if graph.postprocess else normalize.network_order
        ),
        height=size[0],
        width=size[1],
        dynamic=list(dynamic),
        size_multiple=graph.backbone.stride,
        mean=normalize.mean,
        std=normalize.std,
        normalize='in the graph'
        if graph.postprocess
        else 'before: (image - mean) / std',
    )
    return dict(
        package=f'sapiens2_mm {sapiens2_mm.__version__}',
        torch=torch.__version__,
        task=graph.task,
        postprocess=graph.postprocess,
        input=image,
        prepare=preparation(graph.model),
        outputs={
            name: dict(
                dtype=str(value.dtype).removeprefix('torch.'),
                meaning=_ABOUT.get(name, 'of the network, before post-processing'),
            )
            for name, value in outputs.items()
        },
        **graph.names(),
    )


def preparation(model: nn.Module) -> dict[str, Any]:
    """How the test pipeline brings a picture to the size of the network."""
    cfg = getattr(model, 'cfg', {})
    if 'test_dataloader' not in cfg:
        return {}
    found: dict[str, Any] = {}
    for step in inference_pipeline(cfg).transforms:
        kind = type(step).__name__
        if kind == 'Letterbox':
            found = dict(resize='letterbox', rounding=step.rounding)
        elif kind == 'DenseResize':
            shrink = 'area' if step.area_when_shrinking else 'bilinear'
            found = dict(resize='stretch', shrink=shrink, enlarge='bilinear')
        elif kind == 'AreaCubicResize':
            found = dict(resize='stretch', shrink='area', enlarge=step.enlarge)
        elif kind == 'GetBBoxCenterScale':
            found = dict(padding=step.padding)
        elif kind == 'Sapiens2TopdownAffine':
            found['resize'] = 'person'
    return found
