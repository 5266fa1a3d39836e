"""What a job writes and asks for, row by row and commit by commit: `python -m tests.figures.price`.

Real use cases on the twin, as on a site where functions are warm and the sweep rests: submit, the agent's calls, one
output, and all put back. A write takes one unit for each KB of the item, two in a transaction; a check there costs as
much as a write. An index entry that is new or goes costs one, one that changes two. Sources: Amazon DynamoDB Developer
Guide, "Read/write capacity", "Global secondary indexes". tests/figures/counts.toml has what is allowed.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from penstock.aws import dynamodb
from penstock.domain.commands import AgentFile, AgentLine, Hello, SubmitJob
from penstock.domain.jobs.jobs import Job, Outcome, Result, job_key
from penstock.domain.pools.pools import HoldTimes
from penstock.domain.site.site import Limits
from penstock.domain.units.units import Unit
from penstock.domain.users import users
from penstock.domain.users.users import Tally, User
from penstock.kernel.rows import Change, Check, Delete, Due, Key, Look, Row, key_of, next_look
from penstock.local import prices
from penstock.local.bench import SCRIPT
from penstock.testing.site import site_toml
from penstock.testing.store import MemoryStore
from penstock.testing.twin import START, MemoryFlows, MemoryVault, Twin
from penstock.usecases import sweep
from penstock.usecases.artifacts import outputs
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from penstock.usecases.units.release import SAMPLED
from penstock.usecases.workers import agents
from tests.figures.report import table

COUNTS = Path(__file__).parent / "counts.toml"
SITE = site_toml(
    targets={"default": {"limit": 4}, "warm": {"limit": 4, "warm": {"max": 1, "idle": "2h"}}},
    wells={"locks": "lock"},
    resources={"bench": {"well": "locks", "names": ["bench-1"]}, "licence": {"well": "locks", "limit": 2}},
)
PRICED = f"{SITE}[prices]\n"
KINDS = {"a job with no resource": [], "a job with two resources": ["bench", "licence"]}
WARM = "warm"
SILENT, PRINTING, AT_REST = (
    "an hour of a job that prints nothing",
    "an hour of a job that prints a line each second",
    "an hour of an idle worker",
)
HOURS = (SILENT, PRINTING, AT_REST)
HOUR = 3600
LINE = "compiling module {} of 4,000: {} warnings"
TABLE_UNITS, PARTITION_UNITS = 40_000, 1000
"""How many write units a second a table has by default, and a partition of it or of an index."""

RUNNING = 300
"""Millionths of a dollar that an hour of a running job may cost, beside its machine, if nobody follows its log."""

TOKEN = "t" * 43
USER = User(name="ada", created=START, version=1)
KB = 1024
SOON = timedelta(seconds=30)
"""How late a sweep is on average, which comes each minute."""

OF_THE_SWEEP = ("sweep", "comparison", "inventory", "poolhour", "accountdiff")
"""What every sweep writes, whether there was a job or not."""

QUEUE_REQUESTS = 3
"""A message is sent, received and deleted."""

COUNTED = min(Limits().jobs, Limits().submits) // users.STEPS
SAMPLES: Mapping[type[Row], int] = {HoldTimes: SAMPLED, Tally: COUNTED}
"""Rows that are written for one of so many jobs only; here they are for each, and cost that part."""

R = TypeVar("R", bound=Row)


@dataclass
class Bill:
    """What was counted. `writes` are units by moment and row, and the same for the indexes."""

    moment: str = ""
    writes: Counter[tuple[str, str]] = field(default_factory=Counter)
    index: Counter[tuple[str, str]] = field(default_factory=Counter)
    reads: float = 0
    requests: int = 0
    transitions: int = 0
    messages: int = 0
    grouped: int = 0
    calls: int = 0
    http: int = 0
    puts: int = 0
    sealed: int = 0
    afterwards: int = 0
    looks: int = 0

    @property
    def units(self) -> int:
        """All write units."""
        return self.writes.total() + self.index.total()

    @property
    def dollars(self) -> float:
        """At list prices, without the seconds of functions. The object's bytes are put by the agent."""
        return (
            self.units * prices.WRITE_UNIT
            + self.reads * prices.READ_UNIT
            + self.transitions * prices.TRANSITION
            + self.messages * QUEUE_REQUESTS * prices.QUEUE_REQUEST
            + self.grouped * QUEUE_REQUESTS * prices.FIFO_REQUEST
            + self.calls * prices.CALL
            + self.http * prices.HTTP_REQUEST
            + self.puts * prices.S3_WRITE
            + self.sealed * prices.KEY_REQUEST
            + self.looks * prices.S3_READ
        )


class BilledStore(MemoryStore):
    """The twin's store, which writes a bill."""

    def __init__(self) -> None:
        super().__init__()
        self.bill = Bill()

    def get(self, key: Key, kind: type[R]) -> R | None:
        found = super().get(key, kind)
        self._read([found] if found else [])
        return found

    def find(self, pk: str, prefix: str, kind: type[R], **how: Any) -> list[R]:
        found = super().find(pk, prefix, kind, **how)
        self._read(found)
        return found

    def _read(self, found: Sequence[Row]) -> None:
        size = sum(map(dynamodb.stored_bytes, found))
        self.bill.reads += max(1, -(-size // (4 * KB)))
        self.bill.requests += 1

    def commit(self, changes: Sequence[Change]) -> bool:
        before = {key_of(change): self.rows.get(key_of(change)) for change in changes}
        done = super().commit(changes)
        self.bill.requests += 1
        for change in changes:
            if done:
                self._bill(change, before[key_of(change)], times=2 if len(changes) > 1 else 1)
        return done

    def look_later(self, due: Due, look: Look, was: Row | None) -> bool:
        moved = super().look_later(due, look, was)
        self.bill.requests += 1
        self.bill.writes[self.bill.moment, due.kind] += moved
        self.bill.index[self.bill.moment, due.kind] += 2 * moved
        return moved

    def _bill(self, change: Change, was: Row | None, times: int) -> None:
        now = None if isinstance(change, Delete) else was if isinstance(change, Check) else change.row
        row = now or was
        assert row is not None
        biggest = max(dynamodb.stored_bytes(each) for each in (was, now) if each)
        at = self.bill.moment, row.kind + (" (check)" if isinstance(change, Check) else "")
        share = Fraction(1, SAMPLES.get(type(row), 1))
        self.bill.writes[at] += share * times * -(-biggest // KB)
        self.bill.index[at] += 0 if isinstance(change, Check) else index_units(was, now)


def index_units(was: Row | None, now: Row | None) -> int:
    """What a write costs in the two indexes: each entry is deleted and put where it changes."""
    return sum(
        (old is not None) + (new is not None)
        for old, new in (
            (was and was.indexed, now and next_look(now)),
            (was and was.place, now and now.place),
        )
        if old != new
    )


class BilledFlows(MemoryFlows):
    """The twin's flows, of which each begins with a Map, also if that has nothing to do."""

    store: BilledStore

    def start(self, job: str, attempt: int, steps: Sequence[int]) -> None:
        self.store.bill.transitions += 1
        super().start(job, attempt, steps)


class BilledVault(MemoryVault):
    """The twin's vault, of which each use is a request of KMS."""

    def __init__(self, store: BilledStore) -> None:
        self._store = store

    def seal(self, secret: bytes, of: Mapping[str, str]) -> str:
        self._store.bill.sealed += 1
        return super().seal(secret, of)

    def open(self, sealed: str, of: Mapping[str, str]) -> bytes:
        self._store.bill.sealed += 1
        return super().open(sealed, of)


class BilledTwin(Twin):
    """The twin with a store that bills, and with what else AWS charges for."""

    store: BilledStore

    def __init__(self, site: str = SITE) -> None:
        super().__init__()
        self.store = BilledStore()
        self.flows = BilledFlows(self.queues)
        self.flows.store = self.store
        self.on = replace(self.on, store=self.store, flows=self.flows, vault=BilledVault(self.store))
        apply.apply(self.on, "root", site, "site.toml")
        self.run()
        apply.go_on(self.on)  # the site's rollout ends before the job comes
        self.store.bill = Bill()

    @property
    def bill(self) -> Bill:
        """What was counted so far."""
        return self.store.bill

    def take(self, queue: str, message: dict[str, Any]) -> None:
        """A message: its requests, and the call that it costs."""
        self.bill.moment = str(message.get("do", queue))
        is_grouped = self.bill.moment == "serve"  # the others are in standard queues
        self.bill.grouped += is_grouped
        self.bill.messages += not is_grouped
        self.bill.calls += 1
        self.bill.transitions += self.bill.moment == "acquire"
        super().take(queue, message)

    def settle(self, job: str, attempt: int, error: str | None, cause: str | None) -> None:
        """The last state of a flow that failed."""
        self.bill.moment = "settle"
        self.bill.transitions += 1
        self.bill.calls += 1
        super().settle(job, attempt, error, cause)

    def request(self, moment: str) -> None:
        """A request to one of the two APIs begins."""
        self.bill.moment = moment
        self.bill.http += 1
        self.bill.calls += 1


def run(resources: Sequence[str], site: str = SITE) -> Bill:
    """One job from its submit until all is put back."""
    twin = BilledTwin(site)
    with mock.patch.object(users, "weight_of", return_value=COUNTED):
        twin.request("submit")
        ask = SubmitJob(SCRIPT, resources=list(resources), output_rules=["=/work/kept"])
        job = submit.submit(twin.on, USER, ask, None)
    twin.run()
    _work(twin, job)
    twin.run()
    row = twin.store.rows[job_key(job)]
    assert isinstance(row, Job)
    assert row.end.outcome is Outcome.SUCCEEDED
    return replace(twin.bill, afterwards=_afterwards(twin))


def _afterwards(twin: BilledTwin) -> int:
    """The write units of the sweeps until nothing is left of the job but its own row: its log, and its retention."""
    twin.store.bill, before = Bill("sweep"), twin.bill
    while due := [row.indexed.at for row in twin.store.rows.values() if row.indexed]:
        twin.world.time = max(twin.world.time, min(due)) + SOON
        sweep.sweep(twin.on)
        twin.run()
    twin.store.bill, swept = before, twin.bill
    units = swept.writes + swept.index
    return sum(units[moment, kind] for moment, kind in units if kind not in OF_THE_SWEEP)


def _say_hello(twin: BilledTwin) -> None:
    """The agent of the job's worker says hello."""
    worker = next(each for each in twin.store.rows.values() if isinstance(each, Unit) and each.lease.order == 0)
    twin.request("hello")
    agents.hello(twin.on, Hello(worker.id, twin.drivers.hand.made[worker.id].key, TOKEN))
    twin.run()


def _work(twin: BilledTwin, job: str) -> None:
    """What the agent asks for: hello, the script's lines, an output, the report."""
    on = twin.on
    _say_hello(twin)
    twin.request("lines")
    line = AgentLine("2026-01-01T00:00:01Z", "stdout", "hello")
    agents.append_events(on, agents.authenticate(on, job, TOKEN), 1, agents.parse_lines([line]))
    twin.request("name outputs")
    file = AgentFile(path="/work/kept", size=5, sha256=hashlib.sha256(b"kept\n").hexdigest(), composite="")
    (upload,) = outputs.begin(on, agents.authenticate(on, job, TOKEN).job, [file]).uploads
    twin.bill.puts += 1
    twin.objects.store(f"artifacts/{upload.id}", b"kept\n")
    twin.request("finish")
    caller = agents.authenticate(on, job, TOKEN)
    agents.report_finished(on, caller, Result.SUCCEEDED, "the script ended", 0, uploaded=[upload.id])


def run_hour(title: str) -> Bill:
    """What a kind of hour costs, nobody following any log."""
    twin = BilledTwin()
    job = running(twin)
    if title == AT_REST:
        _idle(twin, job)
    else:
        _keep_lease(twin, job, lines=title == PRINTING)
    return twin.bill


def running(twin: BilledTwin) -> str:
    """A job whose script runs, on a worker that is kept."""
    job = submit.submit(twin.on, USER, SubmitJob(SCRIPT, timeout=4 * HOUR, target=WARM), None)
    twin.run()
    _say_hello(twin)
    return job


def _keep_lease(twin: BilledTwin, job: str, *, lines: bool) -> None:
    """An hour of a job: the agent's heartbeats, or its lines, which are sent shortly before these."""
    beat = Limits().heartbeat
    every, sent = beat - lines, 1
    twin.store.bill = Bill()
    for _ in range(HOUR // every):
        twin.pass_time(every)
        caller = agents.authenticate(twin.on, job, TOKEN)
        twin.request("lines" if lines else "heartbeat")
        if lines:
            told = [_line(twin, number) for number in range(sent, sent + every)]
            assert agents.append_events(twin.on, caller, sent, agents.parse_lines(told)).lease_seconds
            sent += every
        else:
            agents.heartbeat(twin.on, caller)


def _line(twin: BilledTwin, number: int) -> AgentLine:
    time = twin.world.now() + timedelta(seconds=number % 60, microseconds=number * 7919 % 1_000_000)
    return AgentLine(time.isoformat(), "stdout", LINE.format(number, number * 7919 % 97), task=0)


def _idle(twin: BilledTwin, job: str) -> None:
    """An hour of an idle worker: its calls, and its looks at its bell."""
    agents.report_finished(twin.on, agents.authenticate(twin.on, job, TOKEN), Result.SUCCEEDED, "the script ended", 0)
    twin.run()
    (worker,) = (row for row in twin.store.rows.values() if isinstance(row, Unit))
    ask = Hello(worker.id, "", "n" * 43, previous=TOKEN, cleaned="nothing is left")
    seconds = agents.hello(twin.on, ask).seconds
    twin.store.bill = Bill(looks=HOUR)
    for _ in range(HOUR // seconds):
        twin.pass_time(seconds)
        twin.request("hello")
        assert agents.hello(twin.on, ask).idle


def hour_counts(bill: Bill) -> dict[str, float]:
    """The counts of an hour that must not grow."""
    return {
        "write_units": round(float(bill.units), 1),
        "read_units": bill.reads,
        "calls": bill.calls,
        "microdollars": round(bill.dollars * 1_000_000, 1),
    }


def counts(bill: Bill) -> dict[str, float]:
    """The counts that must not grow."""
    return {
        "write_units": round(float(bill.units), 1),
        "read_units": bill.reads,
        "store_requests": bill.requests,
        "transitions": bill.transitions,
        "messages": bill.messages + bill.grouped,
        "calls": bill.calls,
        "key_requests": bill.sealed,
        "write_units_afterwards": bill.afterwards,
        "microdollars": round(bill.dollars * 1_000_000, 1),
    }


def allowed() -> dict[str, dict[str, float]]:
    """What a job may take: the committed figures, by kind of job."""
    return tomllib.loads(COUNTS.read_text(encoding="utf-8"))


def tell(title: str, bill: Bill) -> None:
    """Print what each row cost in each moment, and the sums."""
    names = sorted(bill.writes, key=lambda each: list(bill.writes).index(each))
    rows = [(*name, bill.writes[name], bill.index[name], bill.writes[name] + bill.index[name]) for name in names]
    table(f"Write units of {title}, by moment", ("moment", "row", "base", "index", "sum"), rows)
    kinds: Counter[str] = Counter()
    for _, kind, base, index, _ in rows:
        kinds[str(kind)] += base + index
    table(f"Write units of {title}, by row", ("row", "sum"), kinds.most_common())
    table(f"Counts of {title}", ("count", "value"), list(counts(bill).items()))


def main() -> int:
    """Print the bills; 1 when one is over what is committed."""
    kept = True
    for title, resources in KINDS.items():
        bill = run(resources)
        tell(title, bill)
        over = {name: value for name, value in counts(bill).items() if value > allowed()[title][name]}
        print(f"Over {COUNTS.name}: {over or 'nothing'}.")
        kept &= not over
    for title in HOURS:
        found = hour_counts(run_hour(title))
        table(f"Counts of {title}", ("count", "value"), list(found.items()))
        kept &= all(value <= allowed()[title][name] for name, value in found.items())
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
