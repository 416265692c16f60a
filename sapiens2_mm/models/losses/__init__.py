"""Losses, one file per task."""

from .albedo import ChromaticityLoss, LowFrequencyL1Loss, RGBMeanLoss
from .contrast import ViewContrastLoss
from .depth import SILogLoss
from .koleo import KoLeoLoss
from .masked import (
    MaskedGradientLoss,
    MaskedL1Loss,
    MaskedL2Loss,
    MultiscaleL1Loss,
)
from .matting import MattingGradientLoss, MattingL1Loss, MattingLaplacianLoss
from .normal import NormalCosineLoss
from .pointmap import (
    IntrinsicsLoss,
    PointmapNormalLoss,
    ScaleL1Loss,
    ShiftInvariantL1Loss,
)
from .pose import KeypointMSELoss, KeypointOHKMMSELoss
from .reconstruction import PatchReconstructionLoss
from .seg import Sapiens2DiceLoss, WeightedCrossEntropyLoss

__all__ = [
    'ChromaticityLoss',
    'IntrinsicsLoss',
    'KeypointMSELoss',
    'KeypointOHKMMSELoss',
    'KoLeoLoss',
    'LowFrequencyL1Loss',
    'MaskedGradientLoss',
    'MaskedL1Loss',
    'MaskedL2Loss',
    'MattingGradientLoss',
    'MattingL1Loss',
    'MattingLaplacianLoss',
    'MultiscaleL1Loss',
    'NormalCosineLoss',
    'PatchReconstructionLoss',
    'PointmapNormalLoss',
    'RGBMeanLoss',
    'SILogLoss',
    'Sapiens2DiceLoss',
    'ScaleL1Loss',
    'ShiftInvariantL1Loss',
    'ViewContrastLoss',
    'WeightedCrossEntropyLoss',
]
