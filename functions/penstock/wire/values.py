"""A job's store: values by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PutValue:
    """A value to be put into a job's store. A secret one is shown to nobody but the job."""

    value: str
    secret: bool = False


@dataclass(frozen=True)
class ValueView:
    """A value, null when it is secret. `source` is the user who put it, "" for the job itself."""

    name: str
    value: str | None
    secret: bool
    source: str
    time: str


@dataclass(frozen=True)
class ValuePage:
    """All values of a job, by name; `next` is always null, for they fit into one page."""

    items: list[ValueView]
    next: str | None
