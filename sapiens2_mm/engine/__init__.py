"""Hooks, loops, optimizer wrappers and their constructors; all host-free."""

from .hooks import *  # noqa: F403
from .loops import SeekingTrainLoop  # noqa: F401
from .optimizers import *  # noqa: F403
