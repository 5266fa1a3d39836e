"""Factories and wells, with what is known of how they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

CauseName = Literal["rate", "capacity", "quota", "misconfigured", "broken"]


@dataclass(frozen=True)
class CoolDownView:
    """What a factory or well is not asked for until then, but by the one unit that probes.

    `tried` is how often in a row there was none.
    """

    scope: str
    cause: CauseName
    why: str
    since: str
    until: str
    tried: int
    probe: str | None
    summary: str


@dataclass(frozen=True)
class FailureView:
    """How often its driver failed with one code, and what it said last. For operators only."""

    code: str
    count: int
    message: str
    first: str
    last: str


@dataclass(frozen=True)
class ComparedView:
    """When what exists outside was last compared with the rows, and what is watched since.

    `failures` is how often it could not be listed since then, `why` the last reason. `strays` are listed and in no row;
    `missing` were listed once and are not any more.
    """

    at: str | None
    seconds_ago: int | None
    failures: int
    why: str | None
    strays: list[str]
    missing: list[str]


@dataclass(frozen=True)
class ApartView:
    """A unit in quarantine: of which target or resource type, on which slot, since when, and why."""

    unit: str
    type: str
    slot: str
    since: str
    reason: str


@dataclass(frozen=True)
class MakerView:
    """One factory or well of the site. `failures` is null for who is no operator."""

    name: str
    settings: dict[str, Any]
    cooling: list[CoolDownView]
    failures: list[FailureView] | None
    compared: ComparedView | None
    quarantined: list[ApartView]
