from .mmdet_detector import MMDetDetector
from .movenet import MoveNetDetector

__all__ = ['MMDetDetector', 'MoveNetDetector']
