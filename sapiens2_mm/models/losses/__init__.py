"""Losses."""

from .chromaticity import ChromaticityLoss
from .dice import Sapiens2DiceLoss
from .intrinsics import IntrinsicsLoss
from .koleo import KoLeoLoss
from .low_frequency_l1 import LowFrequencyL1Loss
from .masked_gradient import MaskedGradientLoss
from .masked_l1 import MaskedL1Loss
from .masked_l2 import MaskedL2Loss
from .matting_gradient import MattingGradientLoss
from .matting_l1 import MattingL1Loss
from .matting_laplacian import MattingLaplacianLoss
from .multiscale_l1 import MultiscaleL1Loss
from .normal_cosine import NormalCosineLoss
from .patch_reconstruction import PatchReconstructionLoss
from .pointmap_normal import PointmapNormalLoss
from .pose import KeypointMSELoss, KeypointOHKMMSELoss
from .rgb_mean import RGBMeanLoss
from .scale_l1 import ScaleL1Loss
from .shift_invariant_l1 import ShiftInvariantL1Loss
from .silog import SILogLoss
from .view_contrast import ViewContrastLoss
from .weighted_cross_entropy import WeightedCrossEntropyLoss

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
