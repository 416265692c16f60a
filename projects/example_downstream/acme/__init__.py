"""A team's own package on top of sapiens2_mm."""

from .wing_loss import WingLoss

__all__ = ['WingLoss']
