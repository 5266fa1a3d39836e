from __future__ import annotations

import pytest

from penstock import bootstrap
from penstock.aws.cloudwatch import EmfMetrics
from penstock.domain.metrics import Level
from penstock.testing.twin import Twin
from tests.functions.service import Service, new_service, new_twin


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> Twin:
    quiet = EmfMetrics(Level.OFF, "penstock")  # metrics are printed, where commands print too
    monkeypatch.setattr(bootstrap, "metrics", lambda: quiet)
    return new_twin(monkeypatch)


@pytest.fixture
def service(twin: Twin) -> Service:
    return new_service(twin)
