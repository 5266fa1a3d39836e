"""How a command ends badly: one class per exit code, each with what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

OUTCOME_CODES = {"succeeded": 0, "failed": 1, "cancelled": 3, "errored": 4}
"""A settled job's outcome as an exit code."""

INTERRUPTED = 130
"""What shells give for Ctrl-C."""


class CliError(Exception):
    """Something that the user is told. `lines` stand between the error and the hint, as they are."""

    exit_code: ClassVar[int] = 4

    def __init__(self, what: str, hint: str | None = None, lines: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.lines = tuple(lines)


class Refused(CliError):
    """The request can't be served as it is: wrong usage, or the service said no. `status` is HTTP's."""

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
