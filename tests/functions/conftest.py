from __future__ import annotations

from dataclasses import replace

import pytest

from penstock import bootstrap
from penstock.testing.twin import START, Twin
from penstock.usecases.site import apply
from tests.functions.service import SITE, Service, StrictStore


@pytest.fixture
def twin(monkeypatch: pytest.MonkeyPatch) -> Twin:
    made = Twin()
    made.store = StrictStore()
    made.on = replace(made.on, store=made.store)
    apply.apply(made.on, "root", SITE, "site.toml")
    made.run()
    monkeypatch.setattr(bootstrap, "aws", lambda: made.on)
    return made


@pytest.fixture
def service(twin: Twin) -> Service:
    made = Service(twin)
    made.add("ada")
    made.add("bob")
    made.add("root", "admin")
    made.add("late", expires=START)
    return made
