"""Which breakage of Penstock a test catches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import pytest

from penstock.domain.users.users import User
from tests.known.site import Known

Plant = Callable[[pytest.MonkeyPatch], None]
Test = TypeVar("Test", bound=Callable[[Known, User], None])


def fails_with(plant: Plant) -> Callable[[Test], Test]:
    """The test fails when this is planted. `test_can_fail.py` sees to it."""

    def mark(test: Test) -> Test:
        test.__dict__["plant"] = plant
        return test

    return mark


BORROWED = {
    "serve_before_write": "usecases.pools.scheduler.acquire",
    "release_without_fence": "usecases.units.release._gone_changes",
    "start_at_once": "usecases.jobs.flow.start",
    "one_by_one": "usecases.jobs.submit.resources",
    "old_agents_write": "usecases.workers.agents.authenticate",
    "last_comes_first": "domain.pools.grants.pick",
    "free_before_clean": "usecases.units.release.destroy",
}
"""The functions that the plants of the simulation break."""


def broken(plant: Plant) -> str:
    """The function that a plant breaks, below `penstock`: the first word of its docstring."""
    return BORROWED.get(plant.__name__) or str(plant.__doc__).split("`")[1]


OWN = ("test_can_fail", "test_table")


def known() -> Iterator[tuple[str, Any]]:
    """Every test of what others get wrong, with its module's name."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path.stem not in OWN:
            module = import_module(f"tests.known.{path.stem}")
            for name, test in vars(module).items():
                if name.startswith("test_") and getattr(test, "__module__", "") == module.__name__:
                    yield path.stem, test
