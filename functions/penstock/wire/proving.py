"""Tests of factories."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.wire.jobs import JobState


@dataclass(frozen=True)
class NewFactoryTest:
    """A test to begin, on a target of the factory.

    With `keep_on_failure` the worker is held for so many seconds from when it is ordered; it is yours to release.
    """

    target: str | None = None
    keep_on_failure: int | None = None


@dataclass(frozen=True)
class FactoryTestStarted:
    """A test that has begun: its job, and the cool-downs that it will wait for, a sentence each."""

    id: str
    target: str
    waits: list[str]


@dataclass(frozen=True)
class CheckView:
    """One thing that must be so, and how long it took. `ok` is null while it is not known, or if it was not reached."""

    check: str
    ok: bool | None
    detail: str
    seconds: float | None


@dataclass(frozen=True)
class FactoryTestView:
    """How far a test is. When it is `over` nothing is left of its worker; `passed` says that all checks are ok."""

    job: str
    factory: str
    target: str
    state: JobState
    worker: str | None
    held_until: str | None
    waits: str | None
    over: bool
    passed: bool
    checks: list[CheckView]
