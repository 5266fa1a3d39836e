"""The site and the jobs: 200 of them with the figures of Arvados' chaos test, or as many as are asked for."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.domain.site.site import TARGET_POOLS
from simulation.scenario import HEADER, IMAGE, Plan

TYPES = (1, 2, 3, 4, 6, 8, 16)
"""vCPUs of the instance types; each has 1.1 GiB, and costs 0.123 an hour, per vCPU."""

GIB_PER_VCPU = 1.1
PRICE = 0.123
BAND = 1.5
"""How much dearer than the cheapest type that fits a machine may be."""

MACHINES, BOOKED = 10, 12
"""How many machines the account may have, and how many the site believes: mistyped, so that the cloud has to say no."""

MACHINES_HARD, BOOKED_HARD = 11, 10
"""In the harder run the site is right, so that it is the one who must not be passed; two for one call fill the rest."""

SUBMITS = 100_000
"""How many jobs a user may submit in a minute. All of them come at once, from one user."""

NARROW = "only-6"
"""A target that is served by the one type of which there is never any. It takes nothing of the quota."""

FAMILY = "any"
"""A target that leaves the size of its machine to the service: a job says what it needs."""

LAB, LAB_POOL = "lab", f"{TARGET_POOLS}lab"
HOSTS = ("lab-a", "lab-b", "lab-c", "lab-d")
"""The hosts of a target, which jobs of one owner share."""

HOST_VCPUS, HOST_GIB = 8, 16

WARM = {"max": 2, "idle": 120, "life": 3600, "reuse": 4}
WELLS = {"bench": 8, "licence": 6}


def size_of(number: int) -> int:
    """The smallest type that a job fits on: vCPUs and memory go up in turn, as in Arvados' test."""
    vcpus, gib = number % 8 + 1, number % 3 + 1
    return next(each for each in TYPES if each >= vcpus and each * GIB_PER_VCPU >= gib)


SIZES = sorted({size_of(number) for number in range(24)})


@dataclass(frozen=True)
class How:
    """What to run: how many jobs, with Arvados' figures or with harder ones, and which kinds of trouble left out."""

    jobs: int = 200
    is_hard: bool = False
    without: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the figures."""
        return "harder" if self.is_hard else "arvados"


@dataclass
class Site:
    """The site: a target and a factory per size of machine, and one that nothing can serve."""

    is_hard: bool
    queue: int
    warm: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    power: str = ""

    @property
    def hosts(self) -> Sequence[str]:
        """The names of all hosts: only the harder figures have some."""
        return HOSTS if self.is_hard else ()

    @property
    def booked(self) -> int:
        """How many machines there may be, as far as the site knows."""
        return BOOKED_HARD if self.is_hard else BOOKED

    def toml(self) -> str:
        """The site as operators write it."""
        lines = [self._target(f"cpu-{size}", [each for each in TYPES if each >= size]) for size in SIZES]
        lines.append(self._target(NARROW, [6]))
        lines += [_family(), _lab()] if self.is_hard else []
        lines.append(f"[quotas.machines]\namount = {self.booked}")
        lines.append('[wells.spring]\ndriver = "fake"\nname = "spring"')
        lines += [self._resource(name, limit) for name, limit in WELLS.items()]
        lines.append(
            f"[limits]\nqueue = {self.queue}\nboot = 300\nlease = 120\nheartbeat = 15\ntimeout = 900\ngrace = 5\n"
            f"submits = {SUBMITS}"
        )
        return "\n".join(lines) + "\n"

    def varied(self, dice: random.Random) -> Site:
        """It has one shape only."""
        del dice
        return self

    def without(self, types: Collection[str]) -> Site:
        """All its types are there from the beginning."""
        del types
        return self

    def _target(self, name: str, sizes: list[int]) -> str:
        """A target, and its factory, which makes one kind of machine."""
        types = ", ".join(f'{{ name = "{size}", price = {size * PRICE:.3f} }}' for size in sizes)
        lines = [f'[factories.{name}]\ndriver = "fake"\nname = "{name}"\ntypes = [{types}]\nprice_band = {BAND}']
        if self.is_hard:
            lines.append('zones = ["a", "b"]\nmarket = "spot-first"')
        uses = "uses = { machines = 1 }" if name != NARROW else ""
        lines.append(f'[targets.{name}]\nfactory = "{name}"\nlimit = {self.booked}\n{uses}')
        if self.is_hard and name != NARROW:
            lines.append(f'machine = {{ cpus = {sizes[0]}, memory = "{int(sizes[0] * GIB_PER_VCPU)}GiB" }}')
        return "\n".join([*lines, self._kept(name)])

    def _resource(self, name: str, limit: int) -> str:
        return f'[resources.{name}]\nwell = "spring"\nlimit = {limit}\n{self._kept(name)}'

    def _kept(self, name: str) -> str:
        kept = ", ".join(f"{key} = {value}" for key, value in self.warm.get(name, {}).items())
        return f"warm = {{ {kept} }}" if kept else ""


def _family() -> str:
    members = ", ".join(f'"cpu-{size}"' for size in SIZES)
    return f"[targets.{FAMILY}]\nmachines = [{members}]\nprice_band = {BAND}"


def _lab() -> str:
    """Hosts that are divided into parts, which jobs of one owner share."""
    names = ", ".join(f'"{name}"' for name in HOSTS)
    return (
        f'[factories.{LAB}]\ndriver = "hosts"\nimage = "{IMAGE}"\n'
        f'[targets.{LAB}]\nfactory = "{LAB}"\nnames = [{names}]\n'
        f'machine = {{ cpus = {HOST_VCPUS}, memory = "{HOST_GIB}GiB" }}\n'
        f'share = {{ parts = {HOST_VCPUS}, serves = "owner" }}'
    )


def draw(dice: random.Random, jobs: int, *, is_hard: bool) -> Plan:
    """The site and the jobs. Only a job's resources are drawn; all else is by its number."""
    hours = 6 + jobs // 50
    warm = {name: WARM for name in ("cpu-1", "cpu-8", "bench")} if is_hard else {}
    return Plan(Site(is_hard, hours * 3600, warm), [_job(dice, number, is_hard=is_hard) for number in range(jobs)])


def target_of(number: int) -> str:
    """Where a job runs: on the type that it fits on. Of those that want type 6 one in ten accepts no other."""
    size = size_of(number)
    return NARROW if size == 6 and number % 40 == 5 else f"cpu-{size}"


def _place(number: int) -> dict[str, Any]:
    """Of five jobs one says what it needs and leaves the target to the service, and one wants a part of a host."""
    if number % 5 not in (1, 3):
        return {"target": target_of(number)}
    needs = {"cpus": number % 8 + 1, "memory": f"{number % 3 + 1}GiB"}
    return {"target": FAMILY if number % 5 == 1 else LAB, "machine": needs}


def _job(dice: random.Random, number: int, *, is_hard: bool) -> dict[str, Any]:
    wanted = [name for name in WELLS if is_hard and dice.random() < 0.2]
    return {
        "script": HEADER,
        **(_place(number) if is_hard else {"target": target_of(number)}),
        "resources": {name: {"type": name} for name in wanted},
        "priority": number % 20 + 1,
        "retries": 10,
    }
