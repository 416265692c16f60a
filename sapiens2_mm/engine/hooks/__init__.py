"""Hooks."""

from .keypoint_check_hook import KeypointCheckHook
from .visualization_hook import VisualizationHook

__all__ = ['KeypointCheckHook', 'VisualizationHook']
