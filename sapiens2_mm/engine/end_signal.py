"""Signals by which schedulers of clusters ask a run to end."""

import signal
import threading
from typing import Any

import torch
from mmengine import dist

# Windows has the first alone.
_SIGNALS = [getattr(signal, n) for n in ('SIGTERM', 'SIGUSR1') if hasattr(signal, n)]


class EndSignal:
    """Notes a signal, and tells it to all processes at the same iteration."""

    def __init__(self) -> None:
        self._own = 0
        self._last: torch.Tensor | None = None  # one iteration ago, of any process
        self._former_handlers: dict[int, Any] = {}

    def listen(self) -> None:
        """Note signals from now on; not in a thread, where Python cannot."""
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._former_handlers[number] = signal.signal(number, self._note)

    def stop_listening(self) -> None:
        """Let signals do what they did before."""
        while self._former_handlers:
            signal.signal(*self._former_handlers.popitem())

    def _note(self, number: int, _: Any) -> None:
        self._own = number

    def number(self, device: torch.device) -> int:
        """The number of a signal that came, 0 if none did; once per iteration.

        Args:
            device: of the tensors that the processes exchange.
        """
        if dist.get_world_size() == 1:
            return self._own
        before = self._last
        self._last = torch.tensor(float(self._own), device=device)
        dist.all_reduce(self._last, 'max')  # read an iteration later, without waiting
        return int(before or 0)
