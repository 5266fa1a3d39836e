"""What many calls share: bounds, ids, and what a refusal looks like."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """How long a text may be, in characters, or how large a number."""

    most: int
    least: int = 0


@dataclass(frozen=True)
class Created:
    """The id of what was made."""

    id: str


@dataclass(frozen=True)
class FaultView:
    """One thing wrong with a request."""

    message: str
    where: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    hint: str | None = None


@dataclass(frozen=True)
class ProblemView:
    """What every refusal looks like: RFC 9457, with a stable `code`."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    errors: list[FaultView]
