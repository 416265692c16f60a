"""Hooks, optimizer wrappers and their constructors; all host-free."""

from .hooks import *  # noqa: F403
from .optimizers import *  # noqa: F403
