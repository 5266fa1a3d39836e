"""The site and the jobs of a seed."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol
from zlib import crc32

TYPES = ("bench", "database", "licence", "sandbox")
CPUS = {"linux": 2, "metal": 8}
FAMILY = "any"
LABS = ("attic", "lab")
"""The targets of hosts."""

HOST_CPUS, HOST_MEMORY = 8, "32GiB"
HEADER = "#!/bin/sh\n"
STUBBORN = HEADER + '#:\n#: name = "stubborn"\n#: variety = "basic"\n#: on_failure = "retry"\n#:\n'


@dataclass
class Shape:
    """A site that can be varied and written as TOML."""

    factories: list[str]
    targets: dict[str, tuple[str, int]]
    counts: dict[str, int]
    names: dict[str, list[str]]
    limits: Mapping[str, int]
    quotas: Mapping[str, int] = field(default_factory=dict)
    uses: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    leases: int = 1
    warm: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    locks: frozenset[str] = frozenset()
    has_shares: bool = False
    has_prices: bool = False
    has_labels: bool = False
    band: int = 0
    labs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    shares: Mapping[str, Mapping[str, str | int]] = field(default_factory=dict)
    power: str = ""
    is_switched: bool = True

    def toml(self) -> str:
        """The site as operators write it. The target `vault` needs a privilege; types in `locks` are only slots."""
        lines = [f'[factories.{name}]\ndriver = "made-up"\nname = "{name}"' for name in self.factories]
        lines += ['[wells.spring]\ndriver = "made-up"\nname = "spring"', '[wells.locks]\ndriver = "lock"', "[limits]"]
        lines += [f"{key} = {value}" for key, value in self.limits.items()]
        lines += ['[shares]\nhalf_life = "1h"\nweights = { bea = 3 }'] if self.has_shares else []
        lines += ['[prices]\ncurrency = "CHF"\ndollar = 0.8'] if self.has_prices else []
        lines += [f"[quotas.{name}]\namount = {amount}" for name, amount in self.quotas.items()]
        for target, (factory, limit) in self.targets.items():
            lines.append(
                f'[targets.{target}]\nfactory = "{factory}"\nlimit = {limit}{self._used(target)}'
                f"{self._with_machine(target)}"
            )
        if self.band:
            members = ", ".join(f'"{name}"' for name in self.targets)
            lines.append(f"[targets.{FAMILY}]\nmachines = [{members}]\nprice_band = {self.band}")
        lines.append(f'[targets.vault]\nfactory = "{self.factories[0]}"\nprivilege = "target.vault"')
        for name, limit in self.counts.items():
            well = f'well = "{self._well(name)}"{self._priced}'
            lines.append(f"[resources.{name}]\n{well}\nlimit = {limit}{self._used(name)}")
        for name, names in self.names.items():
            quoted = ", ".join(f'"{each}"' for each in names)
            leases = f"names = [{quoted}]\nleases = {self.leases}"
            lines.append(f'[resources.{name}]\nwell = "{self._well(name)}"\n{leases}{self._used(name)}')
            lines += [_labelled(name, each) for each in names if self.has_labels]
        return "\n".join([*lines, *self._hosted()]) + "\n"

    def _hosted(self) -> list[str]:
        """The targets of hosts."""
        lines = [f'[factories.benches]\ndriver = "hosts"\nimage = "{IMAGE}"'] if self.labs else []
        lines += [CONTROLLER] if self.power else []
        lines += [f"power = {self.power}"] if self.power and self.is_switched else []
        for name, names in self.labs.items():
            quoted = ", ".join(f'"{each}"' for each in names)
            lines.append(f'[targets.{name}]\nfactory = "benches"\nnames = [{quoted}]')
            lines.append(f'machine = {{ cpus = {HOST_CPUS}, memory = "{HOST_MEMORY}" }}')
            lines += [f"share = {_inline(self.shares[name])}"] if name in self.shares else []
        return lines

    @property
    def hosts(self) -> Sequence[str]:
        """The names of all hosts."""
        return [host for hosts in self.labs.values() for host in hosts]

    def _with_machine(self, target: str) -> str:
        """What a target's machines cost; with a family also what they have, and metal costs a little more."""
        if not self.band:
            return self._priced
        priced = f"\nprice = {1.5 + CPUS[target] / 20}" if self.has_prices else ""
        return f"{priced}\nmachine = {_inline({'cpus': CPUS[target]})}"

    @property
    def _priced(self) -> str:
        return "\nprice = 1.5" if self.has_prices else ""

    def _well(self, name: str) -> str:
        return "locks" if name in self.locks else "spring"

    def _used(self, name: str) -> str:
        """What a target or a type uses, and what is kept of it; no more is made ahead than may be kept or has slots."""
        warm, names = dict(self.warm.get(name, {})), self.names.get(name, [])
        slots = self.targets[name][1] if name in self.targets else self.counts.get(name, len(names) * self.leases)
        if "min" in warm:
            warm["min"] = min(warm["min"], warm["max"], slots)
        tables = {"uses": self.uses.get(name, {}), "warm": warm}
        return "".join(f"\n{key} = {_inline(table)}" for key, table in tables.items() if table)

    def varied(self, dice: random.Random) -> Shape:
        """A site that an operator may make of this one: other names, other limits, another factory for a target."""
        names = {name: _other_names(dice, name, held) for name, held in self.names.items()}
        counts = {name: dice.choice((0, 1, limit, limit + 1)) for name, limit in self.counts.items()}
        targets = {
            name: (dice.choice(self.factories), dice.choice((1, limit))) for name, (_, limit) in self.targets.items()
        }
        if dice.random() < 0.2:
            gone = dice.choice([*names, *counts])
            names.pop(gone, None)
            counts.pop(gone, None)
        warm = {
            name: {**kept, "max": dice.choice((0, 1, 2))} for name, kept in self.warm.items() if dice.random() < 0.7
        }
        labs, shares = _other_labs(dice, self.labs), _other_shares(dice, self.shares)
        is_switched = not self.power or dice.random() < 0.8
        return replace(
            self, targets=targets, counts=counts, names=names, warm=warm, labs=labs, shares=shares,
            is_switched=is_switched,
        )  # fmt: skip

    def without(self, types: Collection[str]) -> Shape:
        """The site without some types of resources."""
        uses = {name: {used: n for used, n in each.items() if used not in types} for name, each in self.uses.items()}
        counts = {name: limit for name, limit in self.counts.items() if name not in types}
        names = {name: held for name, held in self.names.items() if name not in types}
        return replace(self, counts=counts, names=names, uses=uses)


def _labelled(kind: str, name: str) -> str:
    """A thing with a label, which its name decides: a site that is varied does not change it."""
    return f'[resources.{kind}.things.{name}]\nlabels = {{ rack = "{crc32(name.encode()) % 2}" }}'


def _inline(table: Mapping[str, int | str]) -> str:
    said = (f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in table.items())
    return f"{{ {', '.join(said)} }}"


def _other_names(dice: random.Random, name: str, held: list[str]) -> list[str]:
    kept = [each for each in held if dice.random() < 0.6]
    return kept + [f"{name}-new-{number}" for number in range(dice.choice((0, 0, 1, 2)))]


def _other_labs(dice: random.Random, labs: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """Some hosts are in another target, or in none."""
    found: dict[str, list[str]] = {name: [] for name in labs}
    for name, hosts in labs.items():
        for host in hosts:
            found[name if dice.random() < 0.6 else dice.choice(sorted(labs))] += [host] if dice.random() < 0.8 else []
    return found


def _other_shares(
    dice: random.Random, shares: Mapping[str, Mapping[str, str | int]]
) -> Mapping[str, Mapping[str, str | int]]:
    """Hosts serve others at once. They are divided otherwise only once they are empty, so that is not drawn."""
    return {name: {**said, "serves": dice.choice(("owner", "owner", "site"))} for name, said in shares.items()}


def _share(dice: random.Random) -> Mapping[str, str | int]:
    return {"parts": dice.choice((2, 4, 8)), "serves": dice.choice(("owner", "owner", "site"))}


class Drawn(Protocol):
    """A site that can be written as TOML, varied, and left without warm units by `dataclasses.replace`."""

    warm: Mapping[str, Mapping[str, int]]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def toml(self) -> str:
        """The site as operators write it."""

    @property
    def hosts(self) -> Sequence[str]:
        """The names of all hosts."""

    @property
    def power(self) -> str:
        """What the site says of their power; "" where no controller switches them."""

    def varied(self, dice: random.Random) -> Drawn:
        """A site that an operator may make of this one."""

    def without(self, types: Collection[str]) -> Drawn:
        """The site without some types of resources."""


@dataclass
class Plan:
    """The site of a seed and the jobs that are submitted to it. `late`: types that the site gets once a job asks for
    one."""

    shape: Drawn
    jobs: list[dict[str, Any]] = field(default_factory=list)
    late: frozenset[str] = frozenset()


def draw(dice: random.Random, jobs: int | None = None) -> Plan:
    """The plan of a seed; with fewer jobs, the first ones of it."""
    types = dice.sample(TYPES, dice.randint(2, 4))
    named = [name for name in types if dice.random() < 0.5]
    shape = Shape(
        factories=["north", "south"][: dice.randint(1, 2)],
        targets={},
        counts={name: dice.randint(1, 3) for name in types if name not in named},
        names={name: [f"{name}-{number}" for number in range(1, dice.randint(1, 3) + 1)] for name in named},
        limits=_limits(dice),
    )
    for target in ("linux", "metal")[: dice.randint(1, 2)]:
        shape.targets[target] = (dice.choice(shape.factories), dice.randint(1, 3))
    _add_uses(dice, shape, types)
    many = dice.choice((10, 10, 15, 20, 40))
    made = [_job(dice, shape) for _ in range(many)]
    _add_warm(dice, shape, types)
    _add_ahead(dice, shape)
    if dice.random() < 0.4:  # what is held for too long without being used is given back
        shape.limits = {**shape.limits, "idle_hold": dice.choice((300, 600, 1800))}
    shape.locks = _locks(shape, types)
    shape.has_shares = random.Random(f"shares of {shape.toml()}").random() < 0.3  # dice of its own leave the others
    shape.has_prices = random.Random(f"prices of {shape.toml()}").random() < 0.4
    _make_leases(shape, made)
    few = random.Random(f"backlogs of {shape.toml()}")
    if few.random() < 0.2:
        shape.limits = {**shape.limits, "at_once": few.randint(1, 4)}
    _choose(shape, made)
    _ask_for_machines(shape, made)
    _ask_for_hosts(shape, made)
    return Plan(shape, made[:jobs], _late(shape))


GROWING = 0.15
"""In how many sites some types of resources come late."""


def _late(shape: Shape) -> frozenset[str]:
    """Some sites get some of their types only when a job asks for one. These dice leave the others alone."""
    dice = random.Random(f"news of {shape.toml()}")
    types = sorted({*shape.counts, *shape.names})
    late = dice.sample(types, dice.randint(1, len(types)))
    return frozenset(late) if dice.random() < GROWING else frozenset()


IMAGE = f"registry.example.com/python@sha256:{'a' * 64}"

HOSTED = 0.1
"""In how many sites there are hosts."""

CONTROLLER = 'url = "https://lab.example.com"\nsecret = "secretsmanager:penstock/lab"'
POWERS = ("true", '{ idle = "1m" }', '{ idle = "2m" }', '{ idle = "10m" }')

CHOICES = ("rack == 0", "rack == 1", "rack != 0", "name == {first}", "name == {first} || rack == 1")


def _choose(shape: Shape, jobs: list[dict[str, Any]]) -> None:
    """In some sites things have labels, and half of what asks for them chooses. These dice leave the others alone."""
    dice = random.Random(f"labels of {shape.toml()}")
    shape.has_labels = bool(shape.names) and dice.random() < 0.4
    for ask in (ask for job in jobs for ask in job["resources"].values() if ask["type"] in shape.names):
        if shape.has_labels and dice.random() < 0.5:
            ask["labels"] = dice.choice(CHOICES).format(first=shape.names[ask["type"]][0])
        if shape.has_labels and dice.random() < 0.15:
            ask["exclusive"] = True


def _ask_for_machines(shape: Shape, jobs: list[dict[str, Any]]) -> None:
    """In some sites a family stands for all targets, and half of the jobs leave it to the service which of them they
    get. These dice leave the others alone.
    """
    dice = random.Random(f"machines of {shape.toml()}")
    if dice.random() < 0.2:
        shape.band = dice.choice((1, 1, 2))
        most = max(CPUS[target] for target in shape.targets)
        for job in jobs:
            if dice.random() < 0.5:
                job |= {"target": FAMILY, "machine": {"cpus": dice.choice((1, 2, most))}}


def _ask_for_hosts(shape: Shape, jobs: list[dict[str, Any]]) -> None:
    """In some sites there are hosts, and most jobs run on them. These dice leave the others alone."""
    dice = random.Random(f"benches of {shape.toml()}")
    if dice.random() < HOSTED:
        labs = LABS[: dice.choice((1, 1, 2))]
        shape.labs = {name: [f"{name}-{letter}" for letter in "abc"[: dice.randint(1, 3)]] for name in labs}
        for job in jobs:
            if dice.random() < 0.7:
                job["target"] = dice.choice(labs)
                job.pop("machine", None)
        _share_hosts(dice, shape, jobs)
        _switch_hosts(shape)


def _switch_hosts(shape: Shape) -> None:
    """In half of these sites a controller switches the hosts. These dice leave the others alone."""
    dice = random.Random(f"power of {shape.toml()}")
    shape.power = dice.choice(POWERS) if dice.random() < 0.5 else ""


def _share_hosts(dice: random.Random, shape: Shape, jobs: list[dict[str, Any]]) -> None:
    """In most of these sites several jobs run on a host, and ask for a part of it, or for all."""
    shape.shares = {name: _share(dice) for name in shape.labs if dice.random() < 0.7}
    for job in jobs:
        if job["target"] in shape.shares and dice.random() < 0.8:
            job["machine"] = dice.choice(({"cpus": dice.choice((1, 1, 2, 3, 4, HOST_CPUS))}, {"memory": "6GiB"}))


def _make_leases(shape: Shape, jobs: list[dict[str, Any]]) -> None:
    """In some sites a part of what asks for resources are leases without a job. These dice leave the others alone."""
    dice = random.Random(f"leases of {shape.toml()}")
    if dice.random() < 0.3:
        for job in jobs:
            job["is_lease"] = bool(job["resources"]) and dice.random() < 0.4


def _add_uses(dice: random.Random, shape: Shape, types: list[str]) -> None:
    """Now and then units take more than their slot: a quota of the account, or slots of another type."""
    quotas: dict[str, int] = {}
    uses: dict[str, dict[str, int]] = {}
    if dice.random() < 0.4:
        quotas["vcpus"] = dice.randint(4, 8)
        uses |= {target: {"vcpus": dice.randint(1, 4)} for target in shape.targets}
    if dice.random() < 0.3:
        quotas["gib"] = dice.randint(4, 12)
        uses |= {name: {"gib": dice.randint(1, 3)} for name in types if dice.random() < 0.7}
    if dice.random() < 0.3:
        user, used = sorted(types)[:2] if dice.random() < 0.5 else sorted(types, reverse=True)[:2]
        uses[user] = {**uses.get(user, {}), used: 1}
    shape.quotas, shape.uses, shape.leases = quotas, uses, dice.choice((1, 1, 2))


def _add_warm(dice: random.Random, shape: Shape, types: list[str]) -> None:
    """In half of the sites units are kept for the next lease; of many, few are, for a short time, or for few leases."""
    if dice.random() < 0.5:
        shape.warm = {
            name: {
                "max": dice.choice((1, 1, 2, 3)),
                "idle": dice.choice((30, 120, 600, 3600)),
                "life": dice.choice((300, 3600, 24 * 3600)),
                "reuse": dice.choice((1, 2, 3, 100, 100)),
            }
            for name in (*shape.targets, *types)
            if dice.random() < 0.7
        }


def _add_ahead(dice: random.Random, shape: Shape) -> None:
    """In most of these sites some are made ahead of need."""
    if dice.random() < 0.7:
        shape.warm = {name: {**kept, "min": dice.choice((0, 1, 1, 2))} for name, kept in shape.warm.items()}


def _locks(shape: Shape, types: list[str]) -> frozenset[str]:
    """In half of the sites most types that keep nothing are only slots. These dice leave the others as they were."""
    dice = random.Random(shape.toml())
    some = frozenset(name for name in types if name not in shape.warm and dice.random() < 0.9)
    return some if dice.random() < 0.5 else frozenset()


def _limits(dice: random.Random) -> Mapping[str, int]:
    queue = dice.choice((900, 24 * 3600, 24 * 3600, 24 * 3600, 7 * 24 * 3600))
    return {"queue": queue, "boot": 300, "lease": 120, "heartbeat": 15, "timeout": 900, "grace": dice.choice((5, 30))}


def _job(dice: random.Random, shape: Shape) -> dict[str, Any]:
    most = {**shape.counts, **{name: len(names) for name, names in shape.names.items()}}
    asked: dict[str, Any] = {}
    for name in dice.sample(sorted(most), dice.randint(0, min(3, len(most)))):
        for number in range(dice.randint(1, most[name]) if dice.random() < 0.5 else 1):
            asked[f"{name}{number}"] = {"type": name}
    return {
        "script": dice.choice((HEADER, STUBBORN)),
        "target": dice.choice(sorted(shape.targets)),
        "resources": asked,
        "priority": dice.choice((0, 0, 0, 10, -10)),
        "retries": dice.choice((0, 1, 1, 2, 3)),
        "timeout": dice.choice((60, 300, 900)),
    }
