"""Each test fails when what it watches over is broken, and for that reason: by an assertion, not by accident."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.known.site import ADA, Known

OWN = ("test_can_fail", "test_table")


def known() -> Iterator[tuple[str, Any]]:
    """Every test of what others get wrong, with its module's name."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path.stem not in OWN:
            module = import_module(f"tests.known.{path.stem}")
            for name, test in vars(module).items():
                if name.startswith("test_") and getattr(test, "__module__", "") == module.__name__:
                    yield path.stem, test


@pytest.mark.parametrize("test", [pytest.param(test, id=f"{where}::{test.__name__}") for where, test in known()])
def test_it_fails_with_what_it_watches_over_broken(test: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = Known()
    test.plant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test(twin, ADA)
