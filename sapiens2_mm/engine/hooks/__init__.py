"""Hooks."""

from .visualization_hook import VisualizationHook

__all__ = ['VisualizationHook']
