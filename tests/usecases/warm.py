"""A site whose workers and resources are kept for the next job."""

from __future__ import annotations

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Result
from penstock.domain.pools.pools import Slot, collection
from penstock.domain.replies import Assignment, Idle
from penstock.domain.units.units import Unit, UnitKind, UnitState, unit_key
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.usecases.steps import submit, worker_of

SITE = site_toml(
    targets={
        "linux": {"limit": 2, "uses": {"vcpus": 4}, "warm": {"max": 1, "idle": "10m", "reuse": 3, "life": "1h"}},
        "other": {"limit": 2, "uses": {"vcpus": 4}},
    },
    wells={"spring": "hand"},
    resources={"db": {"well": "spring", "limit": 2, "warm": {"max": 2}}},
    quotas={"vcpus": 8},
)


class Agent:
    """An agent that goes on from job to job, with a new token for each."""

    def __init__(self, twin: Twin, worker: str) -> None:
        self.twin, self.worker, self.turn = twin, worker, 1

    def token(self, turn: int) -> str:
        return f"{turn:02d}" + "t" * 43

    def hello(self) -> Assignment | Idle:
        key = drivers.bootstrap_key(self.twin.on.signing_key(), self.worker) if self.turn == 1 else ""
        previous = self.token(self.turn - 1) if self.turn > 1 else ""
        ask = Hello(self.worker, key, self.token(self.turn), "host", previous, "nothing of the job is left")
        said = agents.hello(self.twin.on, ask)
        self.twin.run()
        return said

    def finish(self, job: str, result: Result = Result.SUCCEEDED) -> None:
        caller = agents.authenticate(self.twin.on, job, self.token(self.turn))
        agents.report_finished(self.twin.on, caller, result, "the script ended", 0)
        self.turn += 1
        self.twin.run()


def worker_at_rest(twin: Twin, ada: User, target: str = "linux") -> Agent:
    """A worker that had a job, and is idle."""
    job = submit(twin, ada, target=target)
    twin.run()
    agent = Agent(twin, worker_of(twin, job).id)
    assert agent.hello().job == job
    agent.finish(job)
    assert agent.hello().idle
    assert unit_of(twin, agent.worker).state is UnitState.IDLE
    return agent


def unit_of(twin: Twin, unit: str) -> Unit:
    found = twin.store.get(unit_key(unit), Unit)
    assert found
    return found


def slots(twin: Twin, pool: str, prefix: str) -> list[Slot]:
    return twin.store.find(collection(pool), prefix, Slot)


def databases(twin: Twin) -> list[Unit]:
    rows = twin.store.rows.values()
    found = [row for row in rows if isinstance(row, Unit) and row.is_a is UnitKind.RESOURCE]
    return sorted(found, key=lambda unit: unit.id)
