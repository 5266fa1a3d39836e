from __future__ import annotations

import pytest

from penstock.testing.twin import Twin
from tests.functions.service import Service, new_service, new_twin


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> Twin:
    return new_twin(monkeypatch)


@pytest.fixture
def service(twin: Twin) -> Service:
    return new_service(twin)
