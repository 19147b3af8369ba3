"""A run that stops in the middle."""

from __future__ import annotations


class Plug:
    """Fails after some checkpoints."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self) -> None:
        self.n -= 1
        if self.n == 0:
            raise RuntimeError("pulled the plug")
