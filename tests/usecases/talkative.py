"""A factory that has evidence of failures."""

from __future__ import annotations

from penstock.testing.twin import ScriptedDriver


class Talkative(ScriptedDriver):
    """A factory that knows what its machines printed."""

    def __init__(self, tells: str | Exception) -> None:
        super().__init__()
        self.tells, self.asked = tells, 0

    def evidence(self, unit: str) -> str | None:
        self.asked += 1
        if isinstance(self.tells, Exception):
            raise self.tells
        return self.tells
