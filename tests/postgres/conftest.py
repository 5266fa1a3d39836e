"""The tests of the driver on a server share that one, and are end-to-end tests.

What the driver promises to the core is tried by tests/contracts/test_drivers.py on a server too, before each commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres.cluster import Cluster

HERE = Path(__file__).parent


def pytest_itemcollected(item: pytest.Item) -> None:
    """To make and remove a hundred databases takes half a minute of processor time."""
    if item.path.is_relative_to(HERE) and "postgres" in getattr(item, "fixturenames", ()):
        item.add_marker("e2e")


@pytest.fixture
def cluster(postgres: Cluster) -> Iterator[Cluster]:
    """The server, with nothing on it; a test leaves nothing there either."""
    yield postgres
    left = postgres.names()
    postgres.clear()
    assert left == (set(), set())
