"""What can go wrong, drawn.

    PenstockError
    ├── Refused                what a client asked for cannot be; carries a stable code and an HTTP status
    ├── Moved                  a lost race that would not settle within its tries: again later
    ├── Throttled              a service refused for longer than we try: again later
    ├── Newer                  what a newer release wrote, in a form that this one cannot read: again when that runs
    ├── TooBig                 a commit that no store can take, however often it is tried: our fault
    ├── Unreached              a service did not take a call: again later; of a hint, its row's due time makes up for it
    └── DriverError            raised by factories and wells, and nothing else is
        ├── RateLimited        no call of that kind for a while
        ├── Short              there is none now; says what is not worth asking for, as far as it was seen
        │   ├── QuotaReached   an account's quota is used up
        │   └── NoCapacity     the provider has none left of this
        ├── Unknown            the provider's own fault, or words of its that nobody has put into the table yet
        ├── Unsatisfiable      can never work: the job fails at once
        └── Misconfigured      the site's settings are wrong: the operator must act

A driver that is not done yet returns NotYet; that is not an error. The docstring's first line is the default message.

What is wrong with a job file, where, and what was meant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.kernel import limits
from penstock.kernel.frozen import dataclass


class PenstockError(Exception):
    """Something went wrong."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").partition("\n")[0])


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a request: where, what, and what to do about it."""

    message: str
    where: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None


class Refused(PenstockError):
    """The request cannot be done."""

    def __init__(self, status: int, code: str, detail: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.faults = tuple(faults)


class Moved(PenstockError):
    """The rows kept changing; the step will be tried again."""


class Throttled(PenstockError):
    """A service had too much to do for longer than one call may wait: again later."""


class Newer(PenstockError):
    """A newer release wrote this. Deploy that again, or wait until its deployment has ended."""


class TimeLimit(BaseException):
    """The time of a call is over: ports.World.limit. No `except Exception` on its way takes it for something else."""


class TooBig(PenstockError):
    """A commit is more than the store takes; it was not sent."""


class Unreached(PenstockError):
    """A service cannot be reached, or does not take a call now."""


class DriverError(PenstockError):
    """The driver failed. `notes`, if any, are stored and passed to its next call: ports.UnitContext.

    Its message is cut: rows and logs repeat it, and a service may answer with a whole page.
    """

    notes: Mapping[str, Any] | None = None

    def __init__(self, message: object = "") -> None:
        super().__init__(str(message)[: limits.DRIVER_TEXT_CHARS])


class RateLimited(DriverError):
    """The provider asks us to slow down.

    `seconds` count from now, because drivers know no clock; `calls` is the kind of call that is limited.
    """

    def __init__(self, message: str = "", seconds: int = 30, calls: str = "") -> None:
        super().__init__(message)
        self.seconds = seconds
        self.calls = calls


@dataclass(frozen=True)
class Shortage:
    """What is not available now. `scope` is its name, always the same: later orders name it in ports.Order.avoid.

    `is_quota`: our own account may have no more, so that a unit that is destroyed may make room.
    """

    scope: str
    why: str
    is_quota: bool = False


class Short(DriverError):
    """There is none of this now. `untried`: there was no time for other alternatives, which a next call begins with."""

    def __init__(self, message: str = "", shortages: Sequence[Shortage] = (), *, untried: bool = False) -> None:
        super().__init__(message)
        self.shortages, self.untried = tuple(shortages), untried


class QuotaReached(Short):
    """The account's quota is used up."""


class NoCapacity(Short):
    """The provider has no capacity for this now."""


class Unknown(DriverError):
    """The provider failed, and did not say how."""

    def __init__(self, message: str = "", code: str = "") -> None:
        super().__init__(message)
        self.code = code


class Unsatisfiable(DriverError):
    """This can never work."""


class Misconfigured(DriverError):
    """The site's settings for this driver are wrong."""


def not_found(what: str, name: str) -> Refused:
    """The refusal for something that is not there, or not the caller's to see."""
    code = what.replace(" ", "-")
    return Refused(404, f"{code}-not-found", f"there is no {what} {name!r} that you may see")


@dataclass(frozen=True)
class Problem:
    """One fault at one place. Lines and columns count from 1; columns count characters."""

    file: str
    line: int
    column: int
    message: str
    hint: str | None = None

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {self.message}{hint}"


@dataclass(frozen=True)
class Problems:
    """Everything wrong with one job file, in the order of its lines."""

    items: tuple[Problem, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.items))
