"""Losses."""

from .chromaticity_loss import ChromaticityLoss
from .dice import Sapiens2DiceLoss
from .intrinsics_loss import IntrinsicsLoss
from .low_frequency_l1_loss import LowFrequencyL1Loss
from .masked_gradient_loss import MaskedGradientLoss
from .masked_l1_loss import MaskedL1Loss
from .masked_l2_loss import MaskedL2Loss
from .matting_gradient_loss import MattingGradientLoss
from .matting_l1_loss import MattingL1Loss
from .matting_laplacian_loss import MattingLaplacianLoss
from .multiscale_l1_loss import MultiscaleL1Loss
from .normal_cosine_loss import NormalCosineLoss
from .pointmap_normal_loss import PointmapNormalLoss
from .rgb_mean_loss import RGBMeanLoss
from .scale_l1_loss import ScaleL1Loss
from .shift_invariant_l1_loss import ShiftInvariantL1Loss
from .silog_loss import SILogLoss
from .weighted_cross_entropy import WeightedCrossEntropyLoss

__all__ = [
    'ChromaticityLoss',
    'IntrinsicsLoss',
    'LowFrequencyL1Loss',
    'MaskedGradientLoss',
    'MaskedL1Loss',
    'MaskedL2Loss',
    'MattingGradientLoss',
    'MattingL1Loss',
    'MattingLaplacianLoss',
    'MultiscaleL1Loss',
    'NormalCosineLoss',
    'PointmapNormalLoss',
    'RGBMeanLoss',
    'SILogLoss',
    'Sapiens2DiceLoss',
    'ScaleL1Loss',
    'ShiftInvariantL1Loss',
    'WeightedCrossEntropyLoss',
]
