"""The settings of a `fargate` factory, and their checks. docs/operators/fargate.md describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from penstock.domain.jobfile.containers import check_image
from penstock.drivers.checks import not_empty, sentences
from penstock.drivers.factories import images
from penstock.drivers.factories.aws.settings import (
    MARKETS,
    MOST_ALTERNATIVES,
    Subnet,
    check_group,
    check_price,
    check_region,
    check_subnet,
    check_tags,
    one_of,
)
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Place, flag, listed, matching, number, record, wanted

GIB = 1024
"""MiB."""

SIZES: Mapping[float, tuple[int, ...]] = {
    0.25: (512, 1 * GIB, 2 * GIB),
    0.5: tuple(range(1 * GIB, 4 * GIB + 1, GIB)),
    1: tuple(range(2 * GIB, 8 * GIB + 1, GIB)),
    2: tuple(range(4 * GIB, 16 * GIB + 1, GIB)),
    4: tuple(range(8 * GIB, 30 * GIB + 1, GIB)),
    8: tuple(range(16 * GIB, 60 * GIB + 1, 4 * GIB)),
    16: tuple(range(32 * GIB, 120 * GIB + 1, 8 * GIB)),
}
"""How much memory (MiB) Fargate has for how many vCPUs. Source: ECS Developer Guide, "Task size"."""

ARCHITECTURES: Mapping[str, str] = {"x86_64": "X86_64", "arm64": "ARM64"}
"""ECS's names of the architectures."""

MOST_GROUPS = 5
"""The most security groups that ECS takes for a task."""

LEAST_STORAGE, MOST_STORAGE = 21, 200
"""GiB of storage that can be asked for. Without asking, a task has 20."""


@dataclass(frozen=True)
class Settings:
    """The settings of a factory: what its tasks are. `cpu` is in vCPUs, `memory` in MiB, `storage` in GiB.

    `images` are those that jobs may name instead of `image`.
    """

    region: str
    cluster: str
    image: str
    subnets: tuple[Subnet, ...]
    images: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    public_ip: bool = False
    cpu: float = 1.0
    memory: int = 2048
    storage: int | None = None
    arch: str = "x86_64"
    market: str = "on-demand"
    price: float | None = None
    spot_price: float | None = None
    execution_role: str = ""
    log_group: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    python: str = "python3"


EXAMPLE = (
    'region = "eu-west-1", cluster = "jobs", image = "registry.example.com/ci/python@sha256:…", '
    'subnets = ["subnet-0123456789abcdef0"]'
)


def read(given: Mapping[str, Any]) -> Settings:
    """The settings in a site's table. Raises Misconfigured."""
    top = Place(("fargate",))
    found = _checked(given, top)
    if found is None:
        raise Misconfigured("; ".join(sentences(top)))
    return found


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, one sentence each."""
    top = Place(("fargate",))
    _checked(given, top)
    return sentences(top)


def objections(options: Mapping[str, Any], given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with what a job says of its container, by a factory's settings."""
    return _wrong(options, read(given))


def image_of(settings: Settings, options: Mapping[str, Any]) -> str:
    """The image of a worker: the job's, or the site's. Raises Unsatisfiable if the site takes what the job says no
    more. [SEC-2]
    """
    wrong = _wrong(options, settings)
    if wrong:
        raise Unsatisfiable("; ".join(wrong))
    return str(options.get("image") or settings.image)


def _wrong(options: Mapping[str, Any], settings: Settings) -> Sequence[str]:
    if options.get("services"):
        return ["a job may have no services there: leave them out, or choose a target with containers"]
    return images.denied(options, settings.images)


def _checked(given: Mapping[str, Any], top: Place) -> Settings | None:
    values = _keys(given, top)
    if top.faults:
        return None
    found = Settings(**values)
    _check_together(found, top)
    return None if top.faults else found


def _check_together(found: Settings, top: Place) -> None:
    """Settings that are valid alone and do not fit together."""
    if found.memory not in SIZES[found.cpu]:
        nearest = min(SIZES[found.cpu], key=lambda each: (abs(each - found.memory), each))
        (top / "memory").fault(
            f"Fargate has no {found.memory} MiB for {found.cpu:g} vCPUs", f"the nearest that it has is {nearest}"
        )
    if found.log_group and not found.execution_role:
        (top / "log_group").fault(
            "`fargate.log_group` needs `execution_role`", "with that role ECS writes the logs, and not the task itself"
        )
    count = len(found.subnets) * len(MARKETS[found.market])
    if count > MOST_ALTERNATIVES:
        most = f"at most {MOST_ALTERNATIVES} are allowed"
        (top / "subnets").fault(f"`fargate.subnets` and markets make {count} alternatives", f"{most}; leave some out")


def _cpu(value: object, place: Place) -> float:
    sizes = ", ".join(f"{each:g}" for each in SIZES)
    if isinstance(value, bool) or not isinstance(value, int | float):
        wanted("a number of vCPUs", value, place, f"one of: {sizes}")
        return 1.0
    if value not in SIZES:
        nearest = min(SIZES, key=lambda each: abs(each - value))
        place.fault(f"{place.label}: Fargate has no {value:g} vCPUs", f"the nearest is {nearest:g}; there are: {sizes}")
        return 1.0
    return float(value)


_keys = record(
    {
        "region": check_region,
        "cluster": matching(
            r"[A-Za-z0-9_-]{1,255}|arn:[\w-]+:ecs:[a-z0-9-]+:\d{12}:cluster/[A-Za-z0-9_-]{1,255}",
            "a cluster",
            "its name or its ARN",
        ),
        "image": check_image,
        "subnets": not_empty(listed(check_subnet, MOST_ALTERNATIVES, "subnets")),
    },
    {
        "images": images.check_allowed,
        "security_groups": listed(check_group, MOST_GROUPS, "security groups"),
        "public_ip": flag,
        "cpu": _cpu,
        "memory": number(512, 120 * GIB),
        "storage": number(LEAST_STORAGE, MOST_STORAGE),
        "arch": one_of(tuple(ARCHITECTURES)),
        "market": one_of(tuple(MARKETS)),
        "price": check_price,
        "spot_price": check_price,
        "execution_role": matching(
            r"arn:[\w-]+:iam::\d{12}:role/[\w+=,.@/-]+", "a role", 'its ARN, like "arn:aws:iam::123456789012:role/pull"'
        ),
        "log_group": matching(r"[\w./#-]{1,512}", "a log group", 'its name, like "/penstock/workers"'),
        "tags": check_tags,
        "python": matching(r"[A-Za-z0-9_./-]+", "a program", 'like "/usr/bin/python3.11"'),
    },
    f"{{ {EXAMPLE} }}",
)
