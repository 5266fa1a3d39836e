from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.aws.conftest import account as account_of
from tests.wells.rack import Rack


@pytest.fixture
def rack() -> Iterator[Rack]:
    made = Rack()
    yield made
    made.end()


account = account_of
