"""The whole system in memory, with a factory and a well whose every call may be made to go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from penstock.domain.pools.pools import Claim, Pool, Slot, collection
from penstock.domain.site.site import Shape
from penstock.domain.units.units import CleanProof, Unit, UnitState
from penstock.domain.users.users import PRIORITY, User
from penstock.ports import NotYet, Order, Ready
from penstock.testing.site import site_toml
from penstock.testing.twin import START, ScriptedDriver, TestDrivers, Twin
from penstock.usecases.pools import resize
from penstock.usecases.site import apply

SITE = site_toml(
    targets={
        "linux": {"limit": 2},
        "wide": {"limit": 40},
        "small": {"limit": 9, "uses": {"vcpus": 4}},
        "tiny": {"limit": 9, "uses": {"vcpus": 1}},
        "kept": {"limit": 4, "uses": {"vcpus": 4}, "warm": {"max": 2, "idle": "10m"}},
        "default": "wide",
    },
    quotas={"vcpus": 8, "tokens": 8},
    wells={"locks": "lock", "hand": "hand"},
    resources={
        "bench": {"well": "hand", "names": ["bench-1"]},
        "board": {"well": "hand", "names": ["board-1"]},
        "licence": {"well": "locks", "limit": 2},
        "server": {"well": "locks", "names": ["one"], "leases": 2},
        "database": {"well": "locks", "limit": 3, "uses": {"tokens": 5}},
        "cache": {"well": "locks", "limit": 3, "uses": {"tokens": 1}},
    },
)

ADA = User(name="ada", created=START, version=1, privileges=(PRIORITY,))
TWO = {"x": {"type": "licence"}, "y": {"type": "licence"}}


class InterruptedDriver(ScriptedDriver):
    """Says no to a second unit in one place, cleans badly when told to, and lets things happen while it works."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.unclean: list[Exception | NotYet] = []
        self.meanwhile: dict[str, Callable[[], Any]] = {}

    def create(self, order: Order) -> Ready | NotYet:
        self.asked.append(order.id)
        there = [one.id for one in self.made.values() if (one.type, one.slot) == (order.type, order.slot)]
        if there not in ([], [order.id]):
            pytest.fail(f"{order.id} would be put on top of {there}")  # an assertion would be a failure of the driver
        done = super().create(order)
        self._pause("create")
        return done

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        self._pause("clean")
        if self.unclean:
            said = self.unclean.pop(0)
            if isinstance(said, Exception):
                raise said
            return said
        return super().destroy(unit, now)

    def list(self) -> Iterable[str]:
        self._pause("list")
        return super().list()

    def _pause(self, call: str) -> None:
        self.meanwhile.pop(call, lambda: None)()


class Drivers(TestDrivers):
    """The real drivers, a factory and a well."""

    def __init__(self) -> None:
        super().__init__()
        self.hand: InterruptedDriver = InterruptedDriver()
        self.own = InterruptedDriver()

    def well(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Any:
        return self.own if driver == "hand" else super().well(driver, settings, name)

    def objections(self, kind: str, driver: str, options: Mapping[str, Any], *told: Any) -> Sequence[str]:
        return [] if driver == "hand" else super().objections(kind, driver, options, *told)


class Known(Twin):
    """The twin with a site of its own; `factory` and `well` are what makes workers and benches."""

    def __init__(self) -> None:
        super().__init__()
        made = Drivers()
        self.drivers, self.factory, self.well = made, made.hand, made.own
        self.on = replace(self.on, drivers=made)
        apply.apply(self.on, "admin", SITE, "site.toml")
        self.run()


def holders(twin: Twin, pool: str) -> dict[str, str]:
    """Which job holds which slot."""
    return {slot.name: str(slot.job) for slot in held(twin, pool)}


def held(twin: Twin, pool: str) -> list[Slot]:
    """The slots that are held."""
    return twin.store.find(collection(pool), "held#", Slot)


def units_of(twin: Twin, job: str) -> list[Unit]:
    """The units of a job that are not gone, resources first."""
    rows = [row for row in twin.store.rows.values() if isinstance(row, Unit) and row.lease.job == job]
    return sorted((row for row in rows if row.state is not UnitState.GONE), key=lambda unit: -unit.lease.order)


def set_limit(twin: Twin, pool: str, limit: int, names: tuple[str, ...] | None = None, *, amount: bool = False) -> None:
    """What an operator and the scheduler do when a limit changes."""
    apply.set_pool(twin.on, pool, Shape(limit, names, amount))
    resize.resize(twin.on, pool)


def assert_nothing_is_left(twin: Known) -> None:
    """Every slot is free, every amount unused, nothing exists outside, nobody waits."""
    rows = list(twin.store.rows.values())
    assert not [row for row in rows if isinstance(row, Slot) and row.job]
    assert not [row for row in rows if isinstance(row, Unit) and row.state is not UnitState.GONE]
    assert not [row for row in rows if isinstance(row, Claim) or (isinstance(row, Pool) and row.used)]
    assert not [*twin.factory.made, *twin.well.made]
