"""Artifacts that are pinned."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.artifacts.why import Explanation
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.twin import Twin
from penstock.usecases.artifacts import explain, pins
from tests.usecases.retained_jobs import end_of, of, tidy


def artifact(twin: Twin) -> Artifact:
    (found,) = of(twin, Artifact)
    assert isinstance(found, Artifact)
    return found


def pin(twin: Twin, user: User, seconds: int | None = None, reason: str = "to look at it") -> None:
    pins.pin(twin.on, user, artifact(twin).id, reason, seconds)


def at_the_end(twin: Twin, job: str) -> None:
    twin.world.time = end_of(twin, job)
    tidy(twin, 3)


def refused(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(Refused) as told:
        call()
    return told.value.status, told.value.code


def why(twin: Twin) -> Explanation:
    return explain.why(twin.on, artifact(twin))
