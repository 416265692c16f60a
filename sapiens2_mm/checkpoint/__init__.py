from .errors import CheckpointError
from .loading import load_backbone, load_for_inference
from .reader import fetch, read_checkpoint
from .unfilled import UnfilledWeights

__all__ = [
    'CheckpointError',
    'UnfilledWeights',
    'fetch',
    'load_backbone',
    'load_for_inference',
    'read_checkpoint',
]
