"""When a transfer counts as broken off: it stalls, or drips."""

TIMEOUT = 60.0  # seconds without a byte, and of waiting that the speed is taken of
MIN_SPEED = 1000  # bytes per second


class SpeedCheck:
    """Ends a transfer that is too slow. Time that its reader takes does not count."""

    def __init__(self) -> None:
        self.seconds, self.num_bytes = 0.0, 0

    def count(self, seconds: float, num_bytes: int) -> None:
        """Note that ``num_bytes`` came after ``seconds`` of waiting.

        Raises:
            TimeoutError: if fewer than ``MIN_SPEED`` came in ``TIMEOUT``.
        """
        self.seconds += seconds
        self.num_bytes += num_bytes
        if self.seconds > TIMEOUT:
            if self.num_bytes < MIN_SPEED * self.seconds:
                text = f'{self.num_bytes} bytes in {self.seconds:.0f} s'
                raise TimeoutError(f'too slow: {text}')
            self.seconds, self.num_bytes = 0.0, 0
