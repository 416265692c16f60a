"""Read checkpoints, translate the names in them, and put them into models.

``io/`` reads and writes files, ``layouts/`` knows the names in them and converts,
``loading`` fills models by ``matching`` and ``strictness``. The dependency goes one
way: models, engine and apis import this package, and it imports none of them.
"""

from .errors import CheckpointError
from .io.reader import fetch, read_checkpoint
from .loading import load_backbone, load_for_inference
from .skip_init import SkipInit

__all__ = [
    'CheckpointError',
    'SkipInit',
    'fetch',
    'load_backbone',
    'load_for_inference',
    'read_checkpoint',
]
