from .errors import CheckpointError
from .reader import fetch, read_checkpoint

__all__ = ['CheckpointError', 'fetch', 'read_checkpoint']
