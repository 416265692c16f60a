"""Hooks, loops, optimizer wrappers and their constructors; all host-free."""

from .fsdp2_strategy import FSDP2Strategy  # noqa: F401
from .hooks import *  # noqa: F403
from .loops import SeekingTrainLoop  # noqa: F401
from .optimizers import *  # noqa: F403
from .strategy_runner import StrategyRunner  # noqa: F401
