"""What is exported of a model: images in, named tensors out."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from sapiens2_mm.models.backbones import Sapiens2
from sapiens2_mm.models.codecs import decode_udp_heatmaps
from sapiens2_mm.models.estimators import DenseDataPreprocessor

CHANNEL_ORDERS = ('bgr', 'rgb')


class Normalize(nn.Module):
    """(B, H, W, 3) uint8 pictures to the (B, 3, H, W) float32 input of a network.

    Args:
        preprocessor: of the model.
        channel_order: of the pictures, ``'bgr'`` or ``'rgb'``.
    """

    def __init__(self, preprocessor: nn.Module, channel_order: str = 'bgr') -> None:
        super().__init__()
        if channel_order not in CHANNEL_ORDERS:
            raise ValueError(
                f'channel_order must be one of {CHANNEL_ORDERS}, got {channel_order!r}'
            )
        # the hosts' have names of their own for the swap, and (3, 1, 1) buffers
        names = ('bgr_to_rgb', 'channel_conversion', '_channel_conversion')
        swaps = any(getattr(preprocessor, name, False) for name in names)
        self.swap = swaps == (channel_order == 'bgr')
        self.network_order = 'rgb' if swaps else 'bgr'
        self.mean, self.std = (
            torch.as_tensor(getattr(preprocessor, name, neutral)).flatten().tolist()
            for name, neutral in (('mean', [0.0]), ('std', [1.0]))
        )

    def forward(self, images: Tensor) -> Tensor:
        images = images.permute(0, 3, 1, 2).float()
        if self.swap:
            images = images.flip(1)
        mean, std = (images.new_tensor(v)[:, None, None] for v in (self.mean, self.std))
        return (images - mean) / std


class Graph(nn.Module):
    """A model as a function of images alone.

    Args:
        model: of ``init_model``.
        postprocess: take (B, H, W, 3) uint8 pictures and return what ``predict`` finds
            in them at this size; otherwise take normalized (B, 3, H, W) float32 and
            return what the network does.
        channel_order: of the pictures.
    """

    task: str

    def __init__(
        self, model: nn.Module, postprocess: bool = False, channel_order: str = 'bgr'
    ) -> None:
        super().__init__()
        self.model = model
        preprocessor = getattr(model, 'data_preprocessor', DenseDataPreprocessor())
        self.normalize = Normalize(preprocessor, channel_order)
        self.channel_order = channel_order
        self.postprocess = postprocess

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        """Named outputs of a batch; floating ones are float32 whatever the weights."""
        run = self.predict if self.postprocess else self.network
        outputs = run(self.normalize(images) if self.postprocess else images)
        return {
            name: value.float() if value.is_floating_point() else value
            for name, value in outputs.items()
        }

    def network(self, images: Tensor) -> dict[str, Tensor]:
        """Outputs of the network."""
        raise NotImplementedError

    def predict(self, images: Tensor) -> dict[str, Tensor]:
        """Outputs of ``network``, as the package makes results of them."""
        raise NotImplementedError

    def names(self) -> dict[str, Any]:
        """Names and colors of keypoints or classes, for the metadata."""
        return {}

    @property
    def backbone(self) -> nn.Module:
        return self.model.backbone

    def example(self, size: Sequence[int], batch_size: int) -> Tensor:
        """Random images of (height, width)."""
        generator = torch.Generator().manual_seed(0)
        shape = (batch_size, *size, 3)
        images = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
        images = images.to(next(self.parameters()).device)
        return images if self.postprocess else self.normalize(images)


class BackboneGraph(Graph):
    """Features; their form is the backbone's ``out_type``."""

    task = 'backbone'

    @property
    def backbone(self) -> nn.Module:
        return self.model

    def network(self, images: Tensor) -> dict[str, Tensor]:
        features = self.model(images)
        names = ['features']
        if len(features) > 1:
            names = [f'features_{index}' for index in range(len(features))]
        return dict(zip(names, features, strict=True))

    predict = network


class PoseGraph(Graph):
    """Keypoints in pixels of the input, which is the crop of one person."""

    task = 'pose'

    def __init__(self, model: nn.Module, *args: Any, **kwargs: Any) -> None:
        super().__init__(model, *args, **kwargs)
        if self.postprocess and not getattr(model.head, 'is_udp', False):
            raise ValueError(
                'post-processing of pose decodes UDP heatmaps in the graph; this model '
                'has another head or decoder, export it without'
            )

    def network(self, images: Tensor) -> dict[str, Tensor]:
        return dict(heatmaps=self.model.head(self.model.extract_feat(images)))

    def predict(self, images: Tensor) -> dict[str, Tensor]:
        feats, head = self.model.extract_feat(images), self.model.head
        if self.flips:
            feats = [feats, self.model.extract_feat(images.flip(-1))]
        heatmaps = head.predict_heatmaps(
            feats, self.model.dataset_meta.get('flip_indices', ()), self.model.test_cfg
        )
        size = (images.shape[3], images.shape[2])
        keypoints, scores = decode_udp_heatmaps(
            heatmaps, size, head.decoder.blur_kernel_size
        )
        return dict(keypoints=keypoints, keypoint_scores=scores)

    @property
    def flips(self) -> bool:
        return bool(self.model.test_cfg.get('flip_test', False))

    def names(self) -> dict[str, Any]:
        meta = self.model.dataset_meta
        names = meta.get('keypoint_id2name', {})
        return dict(
            keypoints=[names[index] for index in sorted(names)],
            skeleton=[list(map(int, link)) for link in meta.get('skeleton_links', ())],
            flip_test=self.flips,
        )


class SegGraph(Graph):
    """Class ids, and how probable the network finds them."""

    task = 'seg'

    def __init__(self, model: nn.Module, *args: Any, **kwargs: Any) -> None:
        super().__init__(model, *args, **kwargs)
        if self.postprocess and model.test_cfg.get('mode') == 'slide':
            raise ValueError(
                'a graph sees one window; set model.test_cfg.mode=whole to segment '
                'whole pictures in it, or export without post-processing'
            )

    def network(self, images: Tensor) -> dict[str, Tensor]:
        return dict(logits=self.model.decode_head(self.model.extract_feat(images)))

    def predict(self, images: Tensor) -> dict[str, Tensor]:
        logits = self.network(images)['logits']
        meta = dict(img_shape=images.shape[2:])
        logits = self.model.decode_head.predict_by_feat(logits, [meta]).float()
        labels = logits.argmax(1)
        if logits.shape[1] <= 256:
            labels = labels.to(torch.uint8)
        return dict(labels=labels, scores=logits.softmax(1).amax(1))

    def names(self) -> dict[str, Any]:
        meta = self.model.dataset_meta
        palette = [list(map(int, color)) for color in meta.get('palette', ())]
        return dict(classes=list(meta.get('classes', ())), palette=palette)


class DenseGraph(Graph):
    """Maps of a head of dense regression."""

    def __init__(self, model: nn.Module, *args: Any, **kwargs: Any) -> None:
        super().__init__(model, *args, **kwargs)
        self.task = model.decode_head.field

    def network(self, images: Tensor) -> dict[str, Tensor]:
        outputs = self.model.decode_head(self.model.extract_feat(images))
        if isinstance(outputs, tuple):
            return dict(zip((f'raw_{self.task}', 'raw_scale'), outputs, strict=True))
        return {f'raw_{self.task}': outputs}

    def predict(self, images: Tensor) -> dict[str, Tensor]:
        feats = self.model.extract_feat(images)
        return self.model.decode_head.predict_batch(feats, tuple(images.shape[2:]))


_GRAPHS = {
    'BasePoseEstimator': PoseGraph,
    'BaseSegmentor': SegGraph,
    'DenseEstimator': DenseGraph,
    'Sapiens2': BackboneGraph,
}


def graph_of(
    model: nn.Module, postprocess: bool = False, channel_order: str = 'bgr'
) -> Graph:
    """The graph of a model, by the class that it extends.

    Raises:
        ValueError: if the model has no known task or another backbone, or no
            post-processing of its kind can be part of a graph.
    """
    for base in type(model).__mro__:
        if base.__name__ in _GRAPHS:
            graph = _GRAPHS[base.__name__](model, postprocess, channel_order)
            if isinstance(graph.backbone, Sapiens2):
                return graph.eval()
    raise ValueError(
        f'{type(model).__name__} cannot be exported, only a backbone Sapiens2 and '
        'models of pose, segmentation and dense regression that have one'
    )
