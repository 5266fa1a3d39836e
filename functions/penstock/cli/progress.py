"""Long work, step by step: a spinner with the time spent on terminals, plain lines elsewhere."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from types import TracebackType

from rich.status import Status

from penstock.cli import times
from penstock.cli.output import Output


class Steps(AbstractContextManager["Steps"]):
    """Called with a sentence at the beginning of each step."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._status = Status("", console=out.errors) if out.errors.is_terminal else None
        self._step: str | None = None
        self._since = time.monotonic()

    def __call__(self, step: str) -> None:
        self._finish("✓", "green")
        self._step, self._since = step, time.monotonic()
        if self._status:
            self._status.update(step)
        else:
            self._out.note(step)

    def __enter__(self) -> Steps:
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish(*(("✗", "red") if error else ("✓", "green")))
        if self._status:
            self._status.stop()

    def _finish(self, mark: str, style: str) -> None:
        if self._step and self._status:
            spent = times.duration(time.monotonic() - self._since)
            self._out.note(f"{mark} {self._step} ({spent})", style)
        self._step = None
