"""A site of five wells with their real drivers in this process, each of which can be stopped at any point of making.

The use cases are real, rows and queues the twin's. What the wells lend is a slot, a folder that a site's own cleaner
empties, a project of a service on the loopback, and of AWS, which is MiniStack's, a session and a prefix.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.domain.jobs.jobs import Job, Result, State
from penstock.domain.pools.pools import Claim, Pool, Slot, SlotState, collection
from penstock.domain.units.units import Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.drivers import MAKER
from penstock.drivers.wells.accounts.well import AccountsWell
from penstock.drivers.wells.lock import LockWell
from penstock.drivers.wells.s3 import S3Well
from penstock.drivers.wells.sts import StsWell
from penstock.kernel.errors import Unknown, Unsatisfiable
from penstock.kernel.rows import Change, Replace
from penstock.ports import NotYet, Order, Ready
from penstock.system import current_site
from penstock.testing.twin import START, Twin
from penstock.usecases.site import apply
from tests.aws.account import BUCKET, Account, keys_of, said
from tests.aws.helpers import ROLE
from tests.usecases.steps import finish, hello, job_of, submit, sweep
from tests.wells.rack import Rack
from tests.wells.service import SURROUNDINGS, well

CLEANER = Path(__file__).parents[2] / "examples" / "clean_sandbox.py"
ADA = User(name="ada", created=START, version=1)
TYPES = ("account", "bench", "keys", "project", "scratch")
"""What a job wants, in the order in which it is had."""

WORKER = "worker"
QUEUE = 7200
"""Seconds that a job waits at most."""

PATIENCE = 181
"""Seconds between two sweeps. There is less to wait for than in a minute each, and nobody is impatient."""

SITE = f"""
[factories.hand]
driver = "hand"
[targets.worker]
factory = "hand"
limit = 1
[targets.default]
redirect = "worker"
[wells.account]
driver = "accounts"
lambda = "clean"
check = true
[wells.bench]
driver = "lock"
[wells.keys]
driver = "sts"
role = "{ROLE}"
region = "eu-west-1"
policy = [{{ Effect = "Allow", Action = "s3:PutObject", Resource = "arn:aws:s3:::{BUCKET}/free/${{job}}/*" }}]
[wells.project]
driver = "http"
url = "URL"
secret = "env:RACK"
[wells.scratch]
driver = "s3"
role = "{ROLE}"
region = "eu-west-1"
bucket = "{BUCKET}"
settle = 0
[resources.account]
well = "account"
names = ["red"]
[resources.bench]
well = "bench"
names = ["bench-1"]
[resources.keys]
well = "keys"
limit = 1
[resources.project]
well = "project"
limit = 1
[resources.scratch]
well = "scratch"
limit = 1
[limits]
queue = {QUEUE}
LIMITS
"""

Makes = Callable[[Order], Ready | NotYet]


def _asked(make: Makes, order: Order) -> Ready | NotYet:
    raise Unknown("nobody is there")


def _half(make: Makes, order: Order) -> Ready | NotYet:
    make(order)
    raise Unknown("the answer was lost")


def _refused(make: Makes, order: Order) -> Ready | NotYet:
    raise Unsatisfiable("there is not one of that")


TROUBLES: Mapping[str, Callable[[Makes, Order], Ready | NotYet]] = {"asked": _asked, "half": _half, "refused": _refused}
"""Where making stops: before it was made, after it was made and before anybody knew, and for good."""


class Lending:
    """The site. `stuck` is the type that goes wrong, and how."""

    def __init__(self, account: Account, rack: Rack, folder: Path, limits: str = "") -> None:
        self.account, self.rack, self.folder = account, rack, folder
        self.stuck: tuple[str, str] | None = None
        self.given: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.ends: list[str] = []
        self.job = ""
        self.twin = Twin()
        self.twin.world.time = datetime.now(UTC)  # sessions end by it
        self.twin.drivers.well = self._well  # type: ignore[method-assign]
        self._troubled(self.twin.drivers.hand, WORKER)
        self._count_ends()
        text = SITE.replace("URL", rack.url).replace("LIMITS", limits)
        apply.apply(self.twin.on, "admin", text, "site.toml")
        self.twin.run()

    def submit(self) -> str:
        """A job that wants one of each, run until it can get no further."""
        self.job = submit(self.twin, ADA, resources=list(reversed(TYPES)), timeout=600)
        self.twin.run()
        return self.job

    def stop_at(self, kind: str, how: str) -> None:
        """Let everybody stop at a type: in its queue, or where it is made."""
        if how == "queue":
            apply.pause(self.twin.on, self.pool(kind), paused=True)
        else:
            self.stuck = kind, how

    def use(self) -> None:
        """Leave something in what there is, as a job does; also with what was told to nobody."""
        if "account" in self.had(self.job):
            (self.folder / "red" / "left").touch()
        for (_, name), told in self.given.items():
            if name == "scratch":
                assert self.put(told, told["prefix"] + "left") == "ok"
        for unit in self.rack.units.values():
            unit["inside"].append("a disk")

    def put(self, told: Mapping[str, Any], key: str) -> str:
        """What comes of writing an object with what was given out: ok, or AWS's code."""
        return said(self.account.client("s3", keys=keys_of(told)).put_object, Bucket=BUCKET, Key=key, Body=b"x")

    def good(self) -> list[str]:
        """The credentials that were given out and still work."""
        keys = {"keys": "free/{job}/x", "scratch": "{prefix}x"}
        tried = [(name, told, keys[name]) for (_, name), told in self.given.items() if name in keys]
        named = [(name, told, key.format(job=self.job, prefix=told.get("prefix"))) for name, told, key in tried]
        return [name for name, told, key in named if self.put(told, key) == "ok"]

    def go_on(self) -> None:
        """Nothing stops anybody any more."""
        self.stuck = None
        for row in self.rows(Pool):
            if row.paused:
                apply.pause(self.twin.on, row.name, paused=False)
        self.twin.run()

    def finish(self, job: str) -> None:
        """Let a job come to its end, whatever that is, and let everything be put back."""
        for _ in range(80):
            found = job_of(self.twin, job)
            if found.is_settled:
                break
            if found.state is State.RUNNING:
                finish(self.twin, job, Result.CANCELLED if found.cancellation.cancelled_by else Result.SUCCEEDED)
            elif any(unit.creation.made and unit.state is UnitState.CREATING for unit in self.workers(job)):
                hello(self.twin, job)
            else:
                sweep(self.twin, PATIENCE)
        for _ in range(20):
            if not self.left():
                return
            sweep(self.twin, PATIENCE)

    def left(self) -> list[str]:
        """What is not as it was: units, slots, claims, secrets, and whatever exists outside."""
        left = [f"unit {unit.id} of {unit.type} is {unit.state}" for unit in self.units()]
        left += [f"{unit.id} keeps a secret" for unit in self.rows(Unit) if unit.access.sealed]
        left += [
            f"{slot.pool}/{slot.name} is {slot.state}" for slot in self.rows(Slot) if slot.state is not SlotState.FREE
        ]
        left += [f"{claim.job} waits for {claim.pool}" for claim in self.rows(Claim)]
        left += [f"{pool.name} has not its limit" for pool in self.rows(Pool) if len(self.free(pool)) != pool.limit]
        return left or [*self.listed(), *self.there()]

    def listed(self) -> list[str]:
        """What the wells' drivers list."""
        return [f"{unit} is listed by {name}" for name in TYPES for unit in self.driver(name).list()]

    def there(self) -> list[str]:
        """What exists outside, whatever the drivers say."""
        there = [f"{each} is in the bucket" for each in self.account.left()]
        there += [f"{each} is in the sandbox" for each in (self.folder / "red").glob("*")]
        return there + [f"{unit} exists" for unit in (*self.rack.units, *self.twin.drivers.hand.made)]

    def units(self) -> list[Unit]:
        """Those that are not gone."""
        return [unit for unit in self.rows(Unit) if unit.state is not UnitState.GONE]

    def workers(self, job: str) -> list[Unit]:
        """The workers of a job that are not gone."""
        return [unit for unit in self.units() if unit.is_a is UnitKind.WORKER and unit.lease.job == job]

    def had(self, job: str) -> list[str]:
        """What a job has that is ready for it, by type."""
        return [unit.type for unit in self.units() if unit.lease.job == job and unit.state is UnitState.READY]

    def free(self, pool: Pool) -> list[Slot]:
        return self.twin.store.find(collection(pool.name), f"{SlotState.FREE}#", Slot)

    def rows(self, kind: type[Any]) -> list[Any]:
        return [row for row in self.twin.store.rows.values() if isinstance(row, kind)]

    @staticmethod
    def pool(kind: str) -> str:
        return f"target/{kind}" if kind == WORKER else f"resource/{kind}"

    def driver(self, name: str) -> Any:
        """A well's driver, as the next function makes it."""
        return self._well("", current_site(self.twin.on).wells[name].settings, name)

    def _well(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Any:
        around = {**SURROUNDINGS, MAKER: name}
        makes: Mapping[str, Callable[[], Any]] = {
            "account": lambda: AccountsWell(settings, around, self._clean),
            "bench": lambda: LockWell(settings, around),
            "keys": lambda: StsWell(settings, around, self.account.client, self.twin.world.now),
            "project": lambda: well(self.rack.url, name),
            "scratch": lambda: S3Well(settings, around, self.account.client),
        }
        return self._troubled(makes[name](), name)

    def _troubled(self, driver: Any, name: str) -> Any:
        """A driver whose making can be stopped, and which remembers what it gave out, also where nobody heard it."""
        make = driver.create

        def heard(order: Order) -> Ready | NotYet:
            done: Ready | NotYet = make(order)
            if isinstance(done, Ready):
                self.given[order.id, name] = done.metadata
            return done

        def create(order: Order) -> Ready | NotYet:
            is_stuck = self.stuck is not None and self.stuck[0] == name
            return TROUBLES[self.stuck[1]](heard, order) if self.stuck and is_stuck else heard(order)

        driver.create = create
        return driver

    def _clean(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = EXAMPLE.answer(request, self.folder)
        return answer

    def _count_ends(self) -> None:
        """Note each job whenever a commit settles it."""
        commit = self.twin.store.commit

        def counting(changes: list[Change]) -> bool:
            done = commit(changes)
            told = [each for each in changes if isinstance(each, Replace) and isinstance(each.row, Job)]
            self.ends += [each.row.id for each in told if done and each.row.is_settled and not each.was.is_settled]
            return done

        self.twin.store.commit = counting  # type: ignore[method-assign, assignment]


def _example() -> Any:
    found = importlib.util.spec_from_file_location("clean_sandbox", CLEANER)
    assert found
    assert found.loader
    made = importlib.util.module_from_spec(found)
    found.loader.exec_module(made)
    return made


EXAMPLE = _example()
