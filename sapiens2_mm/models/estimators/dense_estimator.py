"""The model of dense regression."""

from typing import Any, Literal

from mmengine.model import BaseModel
from torch import Tensor

from sapiens2_mm.registry import MODELS
from sapiens2_mm.structures import DenseDataSample


@MODELS.register_module()
class DenseEstimator(BaseModel):
    """Backbone, optional neck and a head that predicts one value per pixel.

    Parameter names are ``backbone.*`` and ``decode_head.*``, those of the official
    task checkpoints.

    Args:
        backbone: returns a tuple of feature maps. One that tells its ``stride`` and
            ``img_size`` is compared with the head here.
        decode_head: config of a ``DenseHead``.
        neck: between the two.
        data_preprocessor: ``DenseDataPreprocessor`` by default.
        init_cfg: of mmengine's ``BaseModule``.

    Raises:
        ValueError: if the head cannot work on the backbone's feature size.
    """

    def __init__(
        self,
        backbone: dict,
        decode_head: dict,
        neck: dict | None = None,
        data_preprocessor: dict | None = None,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        if data_preprocessor is None:
            data_preprocessor = dict(type='sapiens2_mm.DenseDataPreprocessor')
        super().__init__(data_preprocessor=data_preprocessor, init_cfg=init_cfg)
        self.backbone = MODELS.build(backbone)
        self.neck = None if neck is None else MODELS.build(neck)
        self.decode_head = MODELS.build(decode_head)
        stride = getattr(self.backbone, 'stride', None)
        if stride is not None and self.neck is None:
            size = tuple(side // stride for side in self.backbone.img_size)
            self.decode_head.check_feature_size(size)

    @property
    def with_neck(self) -> bool:
        return self.neck is not None

    def extract_feat(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Feature maps of (B, 3, H, W) normalized images."""
        # the images follow a model that was cast to half precision
        inputs = inputs.to(next(self.backbone.parameters()).dtype)
        feats = self.backbone(inputs)
        return feats if self.neck is None else self.neck(feats)

    def forward(
        self,
        inputs: Tensor,
        data_samples: list[DenseDataSample] | None = None,
        mode: Literal['tensor', 'loss', 'predict'] = 'tensor',
    ) -> dict[str, Tensor] | list[DenseDataSample] | Any:
        """Run the model.

        Args:
            inputs: (B, 3, H, W), from the data preprocessor.
            data_samples: one per image. ``loss`` reads their ``gt_*`` fields;
                ``predict`` their meta information, and without them predicts at the
                size of the inputs.
            mode: ``'loss'`` returns named losses, ``'predict'`` the data samples with
                ``pred_*`` fields at the size of the original images, ``'tensor'`` the
                head's raw output.

        Raises:
            ValueError: for another mode, or for losses of a head without any, or
                without data samples.
        """
        if mode == 'loss':
            losses = data_samples and self.decode_head.loss(
                self.extract_feat(inputs), data_samples
            )
            if not losses:
                text = f'{type(self.decode_head).__name__} has no loss to train with'
                advice = 'set decode_head.loss_decode in the config, give data_samples'
                raise ValueError(f'DenseEstimator: {text}; {advice}')
            return losses
        if mode == 'predict':
            if data_samples is None:
                size = tuple(inputs.shape[-2:])
                meta = dict(ori_shape=size, img_shape=size)
                data_samples = [DenseDataSample(metainfo=meta) for _ in inputs]
            return self.decode_head.predict(self.extract_feat(inputs), data_samples)
        if mode == 'tensor':
            return self.decode_head(self.extract_feat(inputs))
        raise ValueError(f"mode must be 'tensor', 'loss' or 'predict', got {mode!r}")
