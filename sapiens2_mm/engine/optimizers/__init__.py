"""Optimizer wrappers and their constructors."""

from .autocast_optim_wrapper import AutocastOptimWrapper
from .layer_decay import LayerDecayOptimWrapperConstructor

__all__ = ['AutocastOptimWrapper', 'LayerDecayOptimWrapperConstructor']
