"""Hooks."""

from .atomic_checkpoint_hook import AtomicCheckpointHook
from .export_backbone_hook import ExportBackboneHook
from .load_checkpoint_hook import LoadCheckpointHook
from .loss_gradient_hook import LossGradientHook
from .metainfo_check_hook import MetainfoCheckHook
from .non_finite_loss_hook import NonFiniteLossHook
from .pretrain_data_hook import PretrainDataHook
from .random_state_hook import RandomStateHook
from .reconstruction_hook import ReconstructionHook
from .teacher_update_hook import TeacherUpdateHook
from .throughput_hook import ThroughputHook
from .visualization_hook import VisualizationHook

__all__ = [
    'AtomicCheckpointHook',
    'ExportBackboneHook',
    'LoadCheckpointHook',
    'LossGradientHook',
    'MetainfoCheckHook',
    'NonFiniteLossHook',
    'PretrainDataHook',
    'RandomStateHook',
    'ReconstructionHook',
    'TeacherUpdateHook',
    'ThroughputHook',
    'VisualizationHook',
]
