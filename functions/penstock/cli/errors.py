"""Errors of commands, one class per exit code: each has a message and a hint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

OUTCOME_CODES = {"succeeded": 0, "failed": 1, "cancelled": 3, "errored": 4}
"""A settled job's outcome as an exit code."""

INTERRUPTED = 130
"""What shells give for Ctrl-C."""


class CliError(Exception):
    """An error for the user. `lines` are printed unchanged between the error and the hint."""

    exit_code: ClassVar[int] = 4

    def __init__(self, what: str, hint: str | None = None, lines: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.lines = tuple(lines)


class Refused(CliError):
    """Wrong usage, or a refusal by the service with an HTTP `status`."""

    exit_code = 2

    def __init__(
        self, what: str, hint: str | None = None, lines: Sequence[str] = (), *, status: int = 0, code: str = ""
    ) -> None:
        super().__init__(what, hint, lines)
        self.status = status
        self.code = code


class Broken(CliError):
    """The service or this program failed."""

    exit_code = 4


class Unreachable(CliError):
    """The service can't be reached."""

    exit_code = 5


class Interrupted(CliError):
    """The user pressed Ctrl-C; `what` says what goes on regardless."""

    exit_code = INTERRUPTED
