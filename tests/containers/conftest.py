"""An engine for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers.helpers import Place


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place()
    yield made
    made.end()
