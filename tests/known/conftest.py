from __future__ import annotations

import pytest

from penstock.domain.users.users import User
from penstock.usecases.jobs import submit
from tests.known.site import ADA, Known


@pytest.fixture
def twin() -> Known:
    return Known()


@pytest.fixture
def ada() -> User:
    return ADA


@pytest.fixture(autouse=True)
def _by_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What others got wrong is between a job's acceptance and its claim: no job gets its worker with the former."""
    monkeypatch.setattr(submit, "CLAIM_TRIES", 0)
