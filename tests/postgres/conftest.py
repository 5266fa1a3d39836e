"""The tests here share one server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.postgres.cluster import Cluster


@pytest.fixture
def cluster(postgres: Cluster) -> Iterator[Cluster]:
    """The server, with nothing on it; a test leaves nothing there either."""
    yield postgres
    left = postgres.names()
    postgres.clear()
    assert left == (set(), set())
