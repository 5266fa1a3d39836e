"""The site: its targets, resource types, factories, wells and limits; and the steps in which jobs acquire.

A site is one TOML text; `site.parse` checks it. `Site.resolve` follows redirects; of a family, `site.machines` chooses
one of its members.

`step_numbers` says in which step an attempt acquires each resource type, so that no two attempts wait for each other.
[QUEUE-3] A step is claimed whole. Every pool belongs to one step only, all attempts take the steps in one order, and
the worker's is the last. So an attempt that waits in a step holds things of earlier steps only, and the holder of what
it waits for waits in a later step, if at all: the waiting ends. Types that take from one pool, because one uses the
other or both use a quota, share a step, at the place of the first of these types.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from penstock.domain.artifacts.retention import Spans
from penstock.domain.github.names import is_among
from penstock.domain.jobfile.machine import Machine
from penstock.domain.money import Micros
from penstock.domain.pools.pools import Sharing, Warm
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import Key, Row

MAX_REDIRECTS = 32
"""How many redirects may follow one another. Source: buildomat's bound."""


EVERY = "*"
"""Stands for all repositories."""

TARGET_POOLS = "target/"
"""How the names of targets' pools begin."""

RESOURCE_POOLS = "resource/"
"""How the names of resource types' pools begin."""


@dataclass(frozen=True)
class Maker:
    """A factory or a well: a driver and its settings; `rate` bounds its creates and destroys, in calls per second."""

    name: str
    driver: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    rate: float | None = None

    @property
    def has_controller(self) -> bool:
        """Whether a program of the site, which the settings name, does what the driver asks for. Hosts are then cleaned
        from outside.
        """
        return "url" in self.settings


@dataclass(frozen=True)
class Health:
    """Scripts that tell whether a worker's machine is fit: before its job's script, and after it. Seconds each."""

    before: str = ""
    after: str = ""
    timeout: int = 60

    @property
    def seconds(self) -> int:
        """How long both may take."""
        return self.timeout * (bool(self.before) + bool(self.after))


@dataclass(frozen=True)
class CanaryScript:
    """The canary of a target or a resource type: a script that is run each so many seconds, to see whether it works.

    A resource type's runs on a target; `timeout` is in seconds.
    """

    every: int
    script: str
    target: str | None = None
    timeout: int = 300


@dataclass(frozen=True)
class Prices:
    """In which currency a site counts, and what bytes cost: in millionths of the currency, as all prices are.

    `dollar` is what a US dollar costs: the service's own work is counted at the list prices of AWS. `stored` is for a
    GiB and a month, `sent` for a GiB that a worker downloads.
    """

    currency: str = "USD"
    dollar: Micros = Micros(1_000_000)
    stored: Micros = Micros(23_000)
    sent: Micros = Micros(0)


class Period(StrEnum):
    """For how long a budget is."""

    DAY = "day"
    MONTH = "month"


@dataclass(frozen=True)
class Budgets:
    """What the jobs of an owner may cost in each day or month, in millionths of the site's currency.

    `owners` are users and repositories; who is not among them has the `default`, None for no budget. `warn`: from which
    percentage of it on its owner is warned.
    """

    period: Period = Period.MONTH
    default: Micros | None = None
    warn: int = 80
    owners: Mapping[str, Micros] = field(default_factory=dict)

    def of(self, owner: str) -> Micros | None:
        """An owner's budget; None if it has none."""
        return self.owners.get(owner, self.default)


@dataclass(frozen=True)
class NamedThing:
    """What the site says of one named thing: its labels, and what else its jobs are told of it."""

    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def labels_of(things: Mapping[str, NamedThing]) -> dict[str, Mapping[str, str]]:
    """The labels of those things that have some, by name."""
    return {name: thing.labels for name, thing in things.items() if thing.labels}


def slot_names(names: tuple[str, ...] | None, each: int) -> tuple[str, ...] | None:
    """The names of the slots of named things, of which each has so many."""
    if names is None or each == 1:
        return names
    return tuple(f"{name}/{number}" for name in names for number in range(1, each + 1))


@dataclass(frozen=True)
class Target:
    """A named execution environment: served by a factory, an alias of another target, or a family of several.

    `names` are those of machines that exist already; each is one slot. `sudo`: jobs may become root. Without it they
    cannot reach their agent. [SEC-2] `price` is what a worker costs in an hour, unless its factory says it. `hosts`
    says more of some of its machines: by their labels jobs choose one.
    `machine` says what its machines have, and `share` how several jobs share each. `machines` are the targets that a
    family stands for; a job gets one of them: the cheapest that fits, or another that costs at most `price_band` times
    as much, None for once.
    """

    name: str
    factory: str | None = None
    limit: int = 0
    redirect: str | None = None
    privilege: str | None = None
    uses: Mapping[str, int] = field(default_factory=dict)
    warm: Warm | None = None
    health: Health | None = None
    names: tuple[str, ...] | None = None
    canary: CanaryScript | None = None
    sudo: bool = True
    price: Micros | None = None
    hosts: Mapping[str, NamedThing] = field(default_factory=dict)
    machine: Machine | None = None
    share: Sharing | None = None
    machines: tuple[str, ...] = ()
    price_band: float | None = None

    @property
    def pool(self) -> str:
        """The pool of its slots."""
        return f"{TARGET_POOLS}{self.name}"

    @property
    def slots(self) -> tuple[str, ...] | None:
        """The names of its slots: one for each machine, or for each part of one that jobs share."""
        return slot_names(self.names, self.share.parts if self.share else 1)

    @property
    def labels(self) -> dict[str, Mapping[str, str]]:
        """The labels of its machines, by name."""
        return labels_of(self.hosts)

    @property
    def has_workers(self) -> bool:
        """Whether it has workers, and so a pool: it is neither an alias nor a family."""
        return self.redirect is None and not self.machines


@dataclass(frozen=True)
class ResourceType:
    """A kind of managed resource: numbered by a limit, or with named slots.

    `things` says more of some of those with names: by their labels jobs choose among them.

    `leases` is how many may have one named resource at once; `uses` is what else each takes while it exists: an amount
    of a quota, or slots of another type. `public` are keys of its metadata that need not be hidden in a job's log.
    `price` is what a lease of it costs in an hour.
    """

    name: str
    well: str
    limit: int
    names: tuple[str, ...] | None = None
    privilege: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    leases: int = 1
    uses: Mapping[str, int] = field(default_factory=dict)
    warm: Warm | None = None
    canary: CanaryScript | None = None
    public: tuple[str, ...] = ()
    price: Micros | None = None
    things: Mapping[str, NamedThing] = field(default_factory=dict)

    @property
    def pool(self) -> str:
        """The pool of its slots."""
        return f"{RESOURCE_POOLS}{self.name}"

    @property
    def labels(self) -> dict[str, Mapping[str, str]]:
        """The labels of its things, by name."""
        return labels_of(self.things)

    @property
    def slots(self) -> tuple[str, ...] | None:
        """The names of its slots: one for each lease of each resource."""
        return slot_names(self.names, self.leases)


@dataclass(frozen=True)
class Quota:
    """An amount of something that units take from while they exist, such as an account's vCPUs."""

    name: str
    amount: int

    @property
    def pool(self) -> str:
        """The pool of the amount."""
        return f"quota/{self.name}"


@dataclass(frozen=True)
class GitHubApp:
    """The GitHub App that jobs come through: its number, and the repositories of which it takes some.

    A repository is `owner/name`, or `owner/*` for all of an owner's; in lower case, as GitHub does not mind. With a
    `client_id` people sign in to the console with it.
    """

    app: int
    repositories: tuple[str, ...] = ()
    api: str = "https://api.github.com"
    client_id: str = ""

    @property
    def web(self) -> str:
        """The web address of GitHub: api.github.com has a host of its own, other servers share one."""
        scheme, _, rest = self.api.partition("://")
        return f"{scheme}://{rest.partition('/')[0].removeprefix('api.')}"

    def serves(self, repository: str) -> bool:
        """Whether jobs of a repository are taken. [SEC-2]"""
        return repository in self.repositories or f"{repository.partition('/')[0]}/*" in self.repositories


@dataclass(frozen=True)
class Shape:
    """What a pool is to be: a number of slots, named slots, or an amount. `hosts`: the names are those of machines.

    `labels` are those of its things, by name; `share` says how jobs share its machines. `spec` is a digest of the
    settings by which its units are made, "" for an amount.
    """

    limit: int
    names: tuple[str, ...] | None = None
    is_amount: bool = False
    warm: Warm | None = None
    hosts: bool = False
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    share: Sharing | None = None
    spec: str = field(default="", compare=False)


@dataclass(frozen=True)
class Limits:
    """Site-wide bounds. All durations in seconds, sizes in bytes. `hold` is how long users may hold what a job had; an
    `idle_hold` of 0 is none. `cache_bytes` is what all caches of one owner may take together. `unpacked_…` bound what
    an archive becomes on a worker: its bytes, entries, levels of folders, and bytes for each byte of the archive.
    `jobs` is how many jobs of one owner may be unsettled, `submits` how many it may submit in a minute, `stored_bytes`
    what all its inputs and outputs may take together, `script_bytes` the scripts that it submits in a day. `at_once` is
    how many of its jobs may be under way; 0 is any number."""

    queue: int = 7 * 24 * 3600
    timeout: int = 4 * 3600
    timeout_most: int = 24 * 3600
    grace: int = 30
    heartbeat: int = 50
    lease: int = 120
    boot: int = 600
    idle_hold: int = 0
    retries: int = 1
    output_bytes: int = 1024**3
    hold: int = 3600
    cache_bytes: int = 10 * 1024**3
    unpacked_bytes: int = 10 * 1024**3
    unpacked_entries: int = 1_000_000
    unpacked_depth: int = 100
    unpacked_ratio: int = 200
    log_bytes: int = 64 * 1024**2
    log_events: int = 1_000_000
    jobs: int = 10_000
    submits: int = 1000
    stored_bytes: int = 10**13
    script_bytes: int = 10**10
    at_once: int = 0

    @property
    def archive_bytes(self) -> int:
        """How big an entry of a cache may be."""
        return min(self.output_bytes, self.cache_bytes)


@dataclass(frozen=True)
class Identity:
    """For whom jobs may have identity tokens, and the privilege that their owners need for it, if any. [SEC-2]"""

    audiences: tuple[str, ...] = ()
    privilege: str | None = None


@dataclass(frozen=True)
class Console:
    """What everybody may read without signing in: the jobs of `public` repositories; of all, if `*` is one. [SEC-2]"""

    public: tuple[str, ...] = ()

    def shows(self, owner: str) -> bool:
        """Whether everybody may read an owner's jobs. Those of people are never public."""
        return ":" in owner and (EVERY in self.public or owner in self.public)


@dataclass(frozen=True)
class Environment:
    """A named set of privileges. A job that asks for it has them once a reviewer has approved the job. [SEC-2]

    `owners` are those whose jobs may ask for it; a repository's only from its `refs`, which are patterns.
    `reviewers` are users, `logins` those of people who press the button at GitHub. Nobody approves what is their own,
    except with `self_review`.
    """

    name: str
    owners: tuple[str, ...] = ()
    refs: tuple[str, ...] = ("refs/heads/*",)
    privileges: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    logins: tuple[str, ...] = ()
    self_review: bool = False

    def takes(self, ref: str) -> bool:
        """Whether jobs of a repository's ref may ask for it."""
        return is_among(ref, self.refs)

    def is_reviewed_by(self, login: str) -> bool:
        """Whether somebody may press the button at GitHub, where upper and lower case are the same."""
        return login.lower() in (each.lower() for each in self.logins)

    @property
    def people(self) -> str:
        """Who may approve, as a part of a sentence."""
        return " or ".join([*self.reviewers, *(f"{login} at GitHub" for login in self.logins)])


@dataclass(frozen=True)
class Shares:
    """How a site divides what many want. `half_life`: after how many seconds a use counts half. [QUEUE-2]

    `weights` are those of users and repositories; who has none there has the `default`.
    """

    half_life: int = 24 * 3600
    default: int = 1
    weights: Mapping[str, int] = field(default_factory=dict)

    def weight(self, owner: str) -> int:
        """An owner's weight."""
        return self.weights.get(owner, self.default)


@dataclass(frozen=True)
class Site:
    """Everything that a site says."""

    factories: Mapping[str, Maker] = field(default_factory=dict)
    wells: Mapping[str, Maker] = field(default_factory=dict)
    targets: Mapping[str, Target] = field(default_factory=dict)
    resources: Mapping[str, ResourceType] = field(default_factory=dict)
    quotas: Mapping[str, Quota] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    retention: Spans = field(default_factory=Spans)
    identity: Identity = field(default_factory=Identity)
    console: Console = field(default_factory=Console)
    shares: Shares | None = None
    prices: Prices | None = None
    budgets: Budgets | None = None
    github: GitHubApp | None = None
    environments: Mapping[str, Environment] = field(default_factory=dict)

    @property
    def has_backlogs(self) -> bool:
        """Whether any job may have to wait in a backlog, before its queues."""
        return bool(self.limits.at_once or self.budgets)

    def resolve(self, name: str) -> Target | None:
        """The target or family that a name leads to, through its redirects; None when it leads nowhere."""
        target = self.targets.get(name)
        for _ in range(MAX_REDIRECTS + 1):
            if target is None or target.redirect is None:
                return target
            target = self.targets.get(target.redirect)
        return None

    def members(self, target: Target) -> list[Target]:
        """The targets that a family stands for; of any other target, itself."""
        return [self.targets[name] for name in target.machines] if target.machines else [target]

    def asked_for(self, name: str, target: Target) -> list[Target]:
        """The names by which a job came to a target: the one that it asked for, where that leads, and the target. Each
        may need a privilege. [SEC-2]
        """
        asked, led = self.targets[name], self.resolve(name) or target
        return list({each.name: each for each in (asked, led, target)}.values())

    def of_host(self, name: str) -> Target | None:
        """The one target that a machine of this name serves; None when it serves none."""
        return next((target for target in self.targets.values() if name in (target.names or ())), None)

    def maker(self, of: Target | ResourceType) -> Maker:
        """Who makes the units of a target or a resource type. Raises KeyError for one that has no workers itself."""
        return self.factories[of.factory or ""] if isinstance(of, Target) else self.wells[of.well]

    def takes(self, uses: Mapping[str, int]) -> dict[str, int]:
        """What is used, by pool instead of by name. A name is a quota's, or else a resource type's."""
        known: Mapping[str, Quota | ResourceType] = {**self.resources, **self.quotas}
        return {known[name].pool: count for name, count in sorted(uses.items())}

    def canaries(self) -> dict[str, tuple[Target | ResourceType, CanaryScript]]:
        """The targets and resource types that have a canary, by pool."""
        both: list[Target | ResourceType] = [*self.targets.values(), *self.resources.values()]
        return {each.pool: (each, each.canary) for each in both if each.canary}

    def pools_of(self, maker: str) -> set[str]:
        """The pools of what a factory or well makes: `factory/NAME` or `well/NAME`."""
        targets = {each.pool for each in self.targets.values() if f"factory/{each.factory}" == maker}
        return targets | {each.pool for each in self.resources.values() if f"well/{each.well}" == maker}

    def privileges(self) -> set[str]:
        """The privileges that something of the site needs. [SEC-2]"""
        targets = {target.privilege for target in self.targets.values()}
        kinds = {kind.privilege for kind in self.resources.values()}
        return {privilege for privilege in targets | kinds if privilege}

    def guarded(self) -> set[str]:
        """The pools of what needs a privilege, by itself or by a name that leads to it. [SEC-2]"""
        named = [self.resolve(target.name) for target in self.targets.values() if target.privilege]
        guarded = {each.pool for target in named if target for each in self.members(target)}
        return guarded | {kind.pool for kind in self.resources.values() if kind.privilege}

    def pools(self) -> dict[str, Shape]:
        """What each pool of the site is to be."""
        real = [target for target in self.targets.values() if target.has_workers]
        found = {
            target.pool: Shape(
                target.limit if target.slots is None else len(target.slots),
                target.slots,
                warm=target.warm,
                hosts=target.names is not None,
                labels=target.labels,
                share=target.share,
                spec=self._spec(target),
            )
            for target in real
        }
        for kind in self.resources.values():
            names, limit = kind.slots, kind.limit if kind.slots is None else len(kind.slots)
            found[kind.pool] = Shape(limit, names, warm=kind.warm, labels=kind.labels, spec=self._spec(kind))
        for quota in self.quotas.values():
            found[quota.pool] = Shape(quota.amount, is_amount=True)
        return found

    def _spec(self, kind: Target | ResourceType) -> str:
        """What tells the settings by which units are made from others: those of their maker, and of their type."""
        makers, own = (self.factories, {}) if isinstance(kind, Target) else (self.wells, kind.settings)
        name = kind.factory if isinstance(kind, Target) else kind.well
        maker = makers.get(str(name), Maker("", ""))
        things = {} if isinstance(kind, Target) else {each: asdict(thing) for each, thing in kind.things.items()}
        said = json.dumps(
            [name, maker.driver, maker.settings, own, *filter(None, [things])], sort_keys=True, default=str
        )
        return hashlib.sha256(said.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class SiteText(Row):
    """The site as it was applied."""

    kind: ClassVar[str] = "site"
    toml: str
    applied_at: datetime
    applied_by: str

    @property
    def key(self) -> Key:
        return SITE_KEY


SITE_KEY = Key("site", "site")


@dataclass(frozen=True, kw_only=True)
class Rollout(Row):
    """What remains of applying a site: its pools, stops and canaries follow the commit of its text. It is due until all
    of them do.

    `since`: when the site was applied. `is_done`: all was done once; the second time nothing is due any more, because a
    list of pools may lack one that was just made.
    """

    kind: ClassVar[str] = "rollout"
    since: datetime
    is_done: bool = False
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return ROLLOUT_KEY

    @property
    def deadline(self) -> datetime | None:
        return self.due


ROLLOUT_KEY = Key("site", "rollout")


def step_leaders(site: Site) -> dict[str, str]:
    """For each resource type the first, by name, of the types that it shares pools with, perhaps over others."""
    leader = {name: name for name in site.resources}
    owners: dict[str, list[str]] = {}
    for name, kind in site.resources.items():
        for pool in (kind.pool, *site.takes(kind.uses)):
            owners.setdefault(pool, []).append(name)
    for sharers in owners.values():
        _merge(leader, sharers)
    return leader


def _merge(leader: dict[str, str], names: list[str]) -> None:
    old = {leader[name] for name in names}
    new = min(old)
    for name in leader:
        if leader[name] in old:
            leader[name] = new


def step_of_pools(site: Site) -> dict[str, str]:
    """For each pool that resource types take from, the first type of the step in which that is acquired."""
    leader = step_leaders(site)
    kinds = site.resources.items()
    return {pool: leader[name] for name, kind in kinds for pool in (kind.pool, *site.takes(kind.uses))}


def step_numbers(site: Site, types: Iterable[str]) -> dict[str, int]:
    """The number of the step, counted from 1, in which each of some types is acquired."""
    leader = step_leaders(site)
    wanted = set(types)
    order = sorted({leader[name] for name in wanted})
    return {name: order.index(leader[name]) + 1 for name in wanted}
