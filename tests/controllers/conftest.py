from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controllers.lab import FaultyLab
from tests.wells.conftest import rack as rack_of


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[FaultyLab]:
    made = FaultyLab(tmp_path)
    yield made
    made.end()


rack = rack_of
