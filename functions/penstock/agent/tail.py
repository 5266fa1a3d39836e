"""The last lines that a task said."""

from __future__ import annotations

from collections import deque

from .pump import Put

LINES = 20
LINE_CHARS = 400  # more is cut by the service


class Tail:
    """Passes lines on, and keeps the last of them. They have no secrets any more."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._last: deque[str] = deque(maxlen=LINES)

    def put(self, stream: str, task: int | None, payload: str) -> None:
        """Take a line."""
        self._last.append(payload[:LINE_CHARS])
        self._put(stream, task, payload)

    @property
    def lines(self) -> list[str]:
        """The last lines, the oldest first."""
        return list(self._last)
