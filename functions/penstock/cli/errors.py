"""Errors of commands, one class per exit code: each has a message and a hint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

OUTCOME_CODES = {"succeeded": 0, "failed": 1, "cancelled": 3, "errored": 4}
"""A settled job's outcome as an exit code."""

INTERRUPTED = 130
"""What shells give for Ctrl-C."""


class CliError(Exception):
    """An error for the user. `lines` are printed unchanged between the error and the hint.

    `members` are what programs get besides: those of the service's problem document, or of this error alone.
    """

    exit_code: ClassVar[int] = 4
    code: str = "error"

    def __init__(self, what: str, hint: str | None = None, lines: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.lines = tuple(lines)
        self.members: Mapping[str, Any] = {}

    def document(self) -> dict[str, Any]:
        """The error for programs: its code, what went wrong, what to do, the exit code, and its members."""
        own = {"code": self.code, "detail": self.what, "hint": self.hint, "exit_code": self.exit_code}
        lines = {"lines": list(self.lines)} if self.lines and not self.members else {}
        return {**self.members, **own, **lines}


class Refused(CliError):
    """Wrong usage, or a refusal by the service with an HTTP `status`."""

    exit_code = 2
    code = "usage"

    def __init__(
        self, what: str, hint: str | None = None, lines: Sequence[str] = (), *, status: int = 0, code: str = ""
    ) -> None:
        super().__init__(what, hint, lines)
        self.status = status
        self.code = code or type(self).code


class Broken(CliError):
    """The service or this program failed."""

    exit_code = 4
    code = "internal"


class Unreachable(CliError):
    """The service can't be reached."""

    exit_code = 5
    code = "unreachable"


class Interrupted(CliError):
    """The user pressed Ctrl-C; `what` says what goes on regardless."""

    exit_code = INTERRUPTED
    code = "interrupted"
