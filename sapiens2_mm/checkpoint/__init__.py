from .errors import CheckpointError
from .io.reader import fetch, read_checkpoint
from .loading import load_backbone, load_for_inference
from .skip_init import UnfilledWeights

__all__ = [
    'CheckpointError',
    'UnfilledWeights',
    'fetch',
    'load_backbone',
    'load_for_inference',
    'read_checkpoint',
]
