"""Each test fails when what it watches over is broken, and for that reason: by an assertion, not by accident."""

from __future__ import annotations

from typing import Any

import pytest

from tests.known.caught import known
from tests.known.site import ADA, Known


@pytest.mark.parametrize("test", [pytest.param(test, id=f"{where}::{test.__name__}") for where, test in known()])
def test_it_fails_with_what_it_watches_over_broken(test: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = Known()
    test.plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test(twin, ADA)
