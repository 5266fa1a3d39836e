"""What can go wrong, drawn.

    PenstockError
    ├── Refused                what a client asked for cannot be; carries a stable code and an HTTP status
    ├── Moved                  a lost race that would not settle within its tries: again later
    ├── Unreached              a hint could not be sent; the row's due time makes up for it
    └── DriverError            raised by factories and wells, and nothing else is
        ├── RateLimited        no call of that kind for a while
        ├── QuotaReached       an account's quota is used up
        ├── NoCapacity         the provider has none left of this
        ├── Unsatisfiable      can never work: the job fails at once
        └── Misconfigured      the site's settings are wrong: the operator must act

A driver that is not done yet returns NotYet; that is not an error. The class's docstring is the default message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class PenstockError(Exception):
    """Something went wrong."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or type(self).__doc__ or "")


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


class Unreached(PenstockError):
    """A service that hints are sent through did not take one."""


class DriverError(PenstockError):
    """The driver failed."""


class RateLimited(DriverError):
    """The provider asks us to slow down."""

    def __init__(self, message: str = "", seconds: int = 30) -> None:
        super().__init__(message)
        self.seconds = seconds


class QuotaReached(DriverError):
    """The account's quota is used up."""


class NoCapacity(DriverError):
    """The provider has no capacity for this now."""


class Unsatisfiable(DriverError):
    """This can never work."""


class Misconfigured(DriverError):
    """The site's settings for this driver are wrong."""


def not_found(what: str, name: str) -> Refused:
    """The refusal for something that is not there, or not the caller's to see."""
    code = what.replace(" ", "-")
    return Refused(404, f"{code}-not-found", f"there is no {what} {name!r} that you may see")
