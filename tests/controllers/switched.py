"""A site whose hosts a controller in this process switches on and off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.domain.units.power import PowerOrder, power_key
from penstock.domain.users.users import User
from penstock.drivers import MAKER
from penstock.drivers.factories.hosts import HostsFactory
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases import cooldowns, sweep
from penstock.usecases.jobs import cancel, jobs
from tests.controllers.benches import FaultyBenches
from tests.usecases.lab_hosts import Bench, apply
from tests.usecases.steps import job_of, submit
from tests.wells.service import SURROUNDINGS

ADA = User(name="ada", created=START)
BOOT = 600
"""Seconds within which a host has to come."""

NAMES = ("bench-7", "bench-8", "bench-9")


def site(benches: FaultyBenches, said: Any = True, **more: Any) -> Twin:
    """Three hosts that the controller switches, all of them away."""
    made = Twin()
    plugged = made.drivers.factory

    def plug(driver: str, settings: Any, name: str = "") -> Any:
        return HostsFactory(settings, {**SURROUNDINGS, MAKER: name}) if settings else plugged(driver, settings, name)

    made.drivers.factory = plug  # type: ignore[method-assign]
    apply(made, text(benches, said, **more))
    return made


def text(benches: FaultyBenches, said: Any, names: Sequence[str] = NAMES, **more: Any) -> str:
    given = {"url": benches.url, "secret": "env:RACK", "timeout": "1s", **({"power": said} if said else {})}
    lab = {"factory": "lab", "names": list(names)}
    return site_toml(factories={"lab": {"driver": "hosts", **given, **more}}, targets={"lab": lab})


def order_of(twin: Twin, name: str = "bench-7") -> PowerOrder:
    found = twin.store.get(power_key(name), PowerOrder)
    assert found
    return found


def waits(twin: Twin, **more: Any) -> str:
    job = submit(twin, ADA, target="lab", **more)
    twin.run()
    return job


def after(twin: Twin, seconds: float, times: int = 1) -> None:
    for _ in range(times):
        twin.pass_time(seconds)
        sweep.sweep(twin.on)
        twin.run()


def posts(benches: FaultyBenches) -> list[str]:
    """The orders that the controller got."""
    return [path.removeprefix("/hosts/") for method, path in benches.asked if path.endswith(("/on", "/off"))]


def summary(twin: Twin, job: str) -> str:
    return jobs.explain(twin.on, job_of(twin, job)).summary


def failures(twin: Twin) -> dict[str, int]:
    return {row.code: row.count for row in cooldowns.failures(twin.on, "factory/lab")}


def idle_since_long(benches: FaultyBenches, **more: Any) -> tuple[Twin, Bench]:
    """A host that is free for so long that the next sweep has it switched off."""
    twin = site(benches, {"idle": "10m"}, **more)
    bench = Bench(twin)
    bench.ask()
    benches.service.hosts["bench-7"]["power"] = "on"
    after(twin, 1)
    for _ in range(10):
        twin.pass_time(60)
        bench.ask()
    return twin, bench


def left_on(benches: FaultyBenches) -> Twin:
    """A host that was switched on for a job that was cancelled since, and that did not come in time."""
    twin = site(benches, {"idle": "20m"}, names=["bench-7"])
    job = waits(twin)
    cancel.cancel(twin.on, ADA, job)
    twin.run()
    after(twin, BOOT + 1)
    return twin
