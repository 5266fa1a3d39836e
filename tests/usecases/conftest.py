from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.domain.logs import archives, logs
from penstock.domain.users.users import PRIORITY, User
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply

SITE = site_toml(
    targets={"linux": {"limit": 2}, "default": "linux", "lab": {"privilege": "target.lab"}},
    wells={"locks": "lock"},
    resources={"bench": {"well": "locks", "names": ["bench-1"]}, "licence": {"well": "locks", "limit": 2}},
)


def new_twin() -> Twin:
    """A twin whose site is applied, and rolled out."""
    made = Twin()
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    apply.go_on(made.on)
    return made


@pytest.fixture
def twin() -> Twin:
    return new_twin()


@pytest.fixture
def fresh() -> Callable[[], Twin]:
    """Makes as many twins as a test wants."""
    return new_twin


@pytest.fixture
def ada() -> User:
    return User(name="ada", created=START, version=1, privileges=(PRIORITY,))


@pytest.fixture
def root() -> User:
    return User(name="root", privileges=("admin",), created=START, version=1)


@pytest.fixture
def by_flow(monkeypatch: pytest.MonkeyPatch) -> None:
    """No job gets its worker when it is submitted: it claims by its flow, as it does while its pool is throttled."""
    monkeypatch.setattr(submit, "CLAIM_TRIES", 0)


@pytest.fixture
def no_log_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log becomes an object, so that tests need not write long ones."""
    monkeypatch.setattr(logs, "SHORT_BYTES", 0)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts and blocks of a few batches."""
    monkeypatch.setattr(archives, "PART_BYTES", 900)
    monkeypatch.setattr(archives, "BLOCK_BYTES", 400)
