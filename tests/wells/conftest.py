from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.wells.rack import Rack


@pytest.fixture
def rack() -> Iterator[Rack]:
    made = Rack()
    yield made
    made.end()
