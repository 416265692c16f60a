"""Feature maps between backbone and head."""

from .probe_neck import ProbeNeck

__all__ = ['ProbeNeck']
