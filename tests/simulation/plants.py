"""Breakages of Penstock that the simulation must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.domain.jobs import backlogs
from penstock.domain.jobs import jobs as domain_jobs
from penstock.domain.jobs.jobs import Job, Report, State, job_key
from penstock.domain.pools import grants, pools
from penstock.domain.pools.pools import Claim, LeaseState, Need, Slot, SlotState
from penstock.domain.units.units import CleanProof, Unit, unit_key
from penstock.domain.users import users
from penstock.kernel.rows import Change, Replace
from penstock.system import transact
from penstock.usecases.jobs import flow, settle, submit
from penstock.usecases.jobs.flow import LeaseGone
from penstock.usecases.pools import scheduler, serving
from penstock.usecases.pools.forecast import first_waiting
from penstock.usecases.units import release
from penstock.usecases.units import release as units_release
from penstock.usecases.workers import agents
from simulation import runner
from simulation.runner import Told

SEEDS = range(3000)

MANY = 25
"""Seeds, each of which takes a second or less: whoever looks at more is told to begin elsewhere."""

Plant = Callable[[pytest.MonkeyPatch], None]


def found(first: int, *, blind: tuple[str, ...] = ()) -> Told | None:
    """The run that finds what is planted: of the seeds from `first` on, or of all others, should dice fall otherwise.

    Raises AssertionError if it took many: it names the seed that finds it now, for somebody to write down.
    """
    seeds = [*SEEDS[first:], *SEEDS[:first]]
    told = runner.find(seeds, blind=blind)
    took = seeds.index(told.run.seed) + 1 if told else 0
    assert told is None or took <= MANY, (
        f"found, but only by the {took}th seed from {first} on: begin with {told.run.seed}"
    )
    return told


def serve_before_write(patch: pytest.MonkeyPatch) -> None:
    """A claim serves its pool, and only then writes its place in the queue: a release in between wakes nobody."""
    serve, acquire = serving.serve, scheduler.acquire

    def early(on: Any, job: str, attempt: int, step: int, token: str) -> None:
        for need in scheduler._needs(on.store.get(job_key(job), Job), attempt, step):
            serve(on, need.pool)
        claimed = transact(on, lambda: scheduler._claim_changes(on, job, attempt, step, token, may_grant=False))
        if not claimed.leases or claimed.leases[0].state is not LeaseState.WAITING:
            acquire(on, job, attempt, step, token)

    patch.setattr(scheduler, "acquire", early)


def grants_past_who_waits(patch: pytest.MonkeyPatch) -> None:
    """A claim that could be granted at once does not ask whether somebody waits."""
    look = scheduler.look

    def blind(on: Any, claims: Sequence[Claim]) -> Any:
        def find(pk: str, prefix: str, *how: Any, **more: Any) -> Any:
            found = on.store.find(pk, prefix, *how, **more)
            return [row for row in found if not isinstance(row, Claim)]

        return look(replace(on, store=SimpleNamespace(get=on.store.get, find=find)), claims)

    patch.setattr(scheduler, "look", blind)


def looks_at_one_line(patch: pytest.MonkeyPatch) -> None:
    """Who serves a pool reads the first claims of its queue, whatever they take, and nobody behind them."""
    first = first_waiting
    patch.setattr(scheduler, "first_waiting", lambda on, pool, *most: first(on, pool, *most)[:2])


def release_without_fence(patch: pytest.MonkeyPatch) -> None:
    """A release that comes twice frees the slot without asking who has it by now."""
    original = units_release._gone_changes

    def release(on: Any, unit_id: str, proof: CleanProof) -> tuple[Sequence[Change], bool]:
        changes, is_first = original(on, unit_id, proof)
        unit = on.store.get(unit_key(unit_id), Unit)
        slot = on.store.get(Slot(pool=unit.lease.pool, name=unit.lease.slot, state=SlotState.HELD).key, Slot)
        return (pools.move(slot, pools.give_back(slot)), True) if slot and not is_first else (changes, is_first)

    patch.setattr(units_release, "_gone_changes", release)


def start_at_once(patch: pytest.MonkeyPatch) -> None:
    """The next attempt starts while the worker of the last one may still run."""

    def start(on: Any, job_id: str) -> bool:
        job = on.store.get(job_key(job_id), Job)
        if job is None or job.state is not State.QUEUED:
            return False
        on.flows.start(job.id, job.attempt, flow.steps(job.request.needs))
        return True

    def put_back(on: Any, job_id: str, attempt: int) -> None:
        original(on, job_id, attempt)
        start(on, job_id)

    original = settle.start_release
    patch.setattr(flow, "start", start)
    patch.setattr(settle, "start_release", put_back)


def one_by_one(patch: pytest.MonkeyPatch) -> None:
    """Two licences are acquired one after the other: two jobs may each hold one, and wait for ever."""
    original = submit.resources

    def apart(*given: Any) -> Iterator[Need]:
        return (replace(need, step=need.order) for need in original(*given))

    patch.setattr(submit, "resources", apart)


def old_agents_write(patch: pytest.MonkeyPatch) -> None:
    """An agent is not asked whether the attempt is still its own."""

    def authenticate(on: Any, job_id: str, token: str) -> agents.Caller:
        job = on.store.get(job_key(job_id), Job)
        if not job or not job.run.worker:
            raise LeaseGone
        return agents.Caller(on.store.get(unit_key(job.run.worker), Unit), job)

    def finish(
        on: Any, caller: agents.Caller, result: Any, reason: str, exit_code: int | None, broken: str = ""
    ) -> dict[str, Any]:
        del broken
        told = domain_jobs.report(caller.job, Report(result, reason, on.world.now(), exit_code))
        on.store.commit([Replace(caller.job, told)])
        settle.settle(on, told.id, told.attempt, None, None)
        return {}

    patch.setattr(agents, "authenticate", authenticate)
    patch.setattr(agents, "report_finished", finish)


def free_before_clean(patch: pytest.MonkeyPatch) -> None:
    """A slot comes back as soon as its lease ends, cleaned or not."""
    original = release.destroy

    def hasty(on: Any, unit: Unit) -> None:
        slot = on.store.get(Slot(pool=unit.lease.pool, name=unit.lease.slot, state=SlotState.HELD).key, Slot)
        if slot and slot.unit == unit.id:
            on.store.commit(list(pools.move(slot, pools.give_back(slot))))
        original(on, unit)

    patch.setattr(release, "destroy", hasty)


def last_comes_first(patch: pytest.MonkeyPatch) -> None:
    """A pool is served from the end of its queue."""

    def pick(pool: str, stocks: Any) -> Any:
        turns = grants._turns(stocks)
        found = (grants._grantable(claim, stocks, turns) for claim in reversed(stocks[pool].claims))
        return next((each for each in found if each), None)

    patch.setattr(grants, "pick", pick)


def lets_everybody_on(patch: pytest.MonkeyPatch) -> None:
    """However many of an owner's jobs are under way, there is room for one more."""
    patch.setattr(backlogs, "room", lambda tally, limits, most: most)


def an_end_counts_for_nothing(patch: pytest.MonkeyPatch) -> None:
    """Who settles is under way for ever, as far as the owner's tally says."""
    patch.setattr(users, "without_job", lambda tally, weight, *, begun: tally)
