"""The simulation can fail: each bug that is planted here is found by some seed, as what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock import transaction
from penstock.domain.jobs import jobs as domain_jobs
from penstock.domain.jobs.jobs import Job, Report, State, job_key
from penstock.domain.pools import grants, pools
from penstock.domain.pools.leases import LeaseState, Need
from penstock.domain.pools.pools import Slot, SlotState
from penstock.domain.units.units import CleanProof, Unit, unit_key
from penstock.kernel.rows import Change, Create, Delete, Replace
from penstock.testing.store import MemoryStore
from penstock.usecases import sweep
from penstock.usecases.jobs import cancel, settle, submit
from penstock.usecases.jobs.jobs import LeaseGone
from penstock.usecases.pools import scheduler
from penstock.usecases.units import reconcile, release
from penstock.usecases.units import release as units_release
from penstock.usecases.units.reconcile import Reconciled
from penstock.usecases.workers import agents
from simulation import runner
from simulation.__main__ import main
from tests.simulation import plants_ahead, plants_warm

SEEDS = range(200)
FIRST = {
    "called_by_two": 81, "start_at_once": 46, "release_without_fence": 9, "one_by_one": 9, "no_sweep": 9,
    "old_agents_write": 9, "any_job_of_the_worker": 37, "key_opens_again": 78,
    "idle_makes_no_room": 42, "makes_past_the_limit": 20, "anybody_cancels": 10,
}  # fmt: skip
"""Where to begin to look for what few seeds find. All others are looked at as well, should the dice fall otherwise."""

Plant = Callable[[pytest.MonkeyPatch], None]


def serve_before_write(patch: pytest.MonkeyPatch) -> None:
    """A claim serves its pool, and only then writes its place in the queue: a release in between wakes nobody."""
    serve, acquire = scheduler.serve, scheduler.acquire

    def early(on: Any, job: str, attempt: int, step: int, token: str) -> None:
        for need in scheduler._needs(on.store.get(job_key(job), Job), attempt, step):
            serve(on, need.pool)
        held = transaction.run(on, lambda: scheduler._claim_changes(on, job, attempt, step, token))
        if not held or held[0].state is not LeaseState.WAITING:
            acquire(on, job, attempt, step, token)

    patch.setattr(scheduler, "acquire", early)


def release_without_fence(patch: pytest.MonkeyPatch) -> None:
    """A release that comes twice frees the slot without asking who has it by now."""
    original = units_release._gone_changes

    def release(on: Any, unit_id: str, proof: CleanProof) -> tuple[Sequence[Change], bool]:
        changes, is_first = original(on, unit_id, proof)
        unit = on.store.get(unit_key(unit_id), Unit)
        slot = on.store.get(Slot(pool=unit.pool, name=unit.slot, state=SlotState.HELD).key, Slot)
        return (pools.move(slot, pools.give_back(slot)), True) if slot and not is_first else (changes, is_first)

    patch.setattr(units_release, "_gone_changes", release)


def keep_the_claim(patch: pytest.MonkeyPatch) -> None:
    """A grant leaves the claim in the queue."""
    commit = MemoryStore.commit

    def forgetful(store: MemoryStore, changes: Sequence[Change]) -> bool:
        is_grant = any(isinstance(change, Create) and isinstance(change.row, Unit) for change in changes)
        kept = [c for c in changes if not (is_grant and isinstance(c, Delete) and isinstance(c.was, pools.Claim))]
        return commit(store, kept)

    patch.setattr(MemoryStore, "commit", forgetful)


def start_at_once(patch: pytest.MonkeyPatch) -> None:
    """The next attempt starts while the worker of the last one may still run."""

    def start(on: Any, job_id: str) -> bool:
        job = on.store.get(job_key(job_id), Job)
        if job is None or job.state is not State.QUEUED:
            return True
        return bool(on.flows.start(job.id, job.attempt, scheduler.steps(job.needs)))

    def put_back(on: Any, job_id: str, attempt: int) -> None:
        original(on, job_id, attempt)
        start(on, job_id)

    original = settle.start_release
    patch.setattr(scheduler, "start_flow", start)
    patch.setattr(settle, "start_release", put_back)


def one_by_one(patch: pytest.MonkeyPatch) -> None:
    """Two licences are acquired one after the other: two jobs may each hold one, and wait for ever."""
    original = submit._resources

    def apart(*given: Any) -> Iterator[Need]:
        return (replace(need, step=need.order) for need in original(*given))

    patch.setattr(submit, "_resources", apart)


def no_sweep(patch: pytest.MonkeyPatch) -> None:
    """Nobody makes up for what was lost."""
    patch.setattr(sweep, "sweep", lambda on: sweep.SweepResult())


def old_agents_write(patch: pytest.MonkeyPatch) -> None:
    """An agent is not asked whether the attempt is still its own."""

    def authenticate(on: Any, job_id: str, token: str) -> agents.Caller:
        job = on.store.get(job_key(job_id), Job)
        if not job or not job.worker:
            raise LeaseGone
        return agents.Caller(on.store.get(unit_key(job.worker), Unit), job)

    def finish(
        on: Any, caller: agents.Caller, result: Any, reason: str, exit_code: int | None, broken: str = ""
    ) -> dict[str, Any]:
        del broken
        told = domain_jobs.report(caller.job, Report(result, reason, on.world.now(), exit_code))
        on.store.commit([Replace(caller.job, told)])
        on.flows.succeed(told.run_token or "")
        return {}

    patch.setattr(agents, "authenticate", authenticate)
    patch.setattr(agents, "report_finished", finish)


def anybody_cancels(patch: pytest.MonkeyPatch) -> None:
    """Whose job it is, is not asked."""
    patch.setattr(cancel, "find", lambda on, user, job_id: on.store.get(job_key(job_id), Job))


def free_before_clean(patch: pytest.MonkeyPatch) -> None:
    """A slot comes back as soon as its lease ends, cleaned or not."""
    original = release.destroy

    def hasty(on: Any, unit: Unit) -> None:
        slot = on.store.get(Slot(pool=unit.pool, name=unit.slot, state=SlotState.HELD).key, Slot)
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


def destroy_all_that_is_listed(patch: pytest.MonkeyPatch) -> None:
    """Whatever a driver lists counts as a stray."""

    def destroy(on: Any) -> Reconciled:
        for unit in list(on.drivers.things):
            on.drivers.factory("made-up", {"name": "north"}).destroy(unit, on.world.now())
        return Reconciled()

    patch.setattr(reconcile, "reconcile", destroy)


PLANTED: Sequence[tuple[Plant, set[str], tuple[str, ...]]] = (
    (serve_before_write, {"QUEUE-1"}, ()),
    (release_without_fence, {"SLOT-1", "UNIT-2", "SLOT-3"}, ()),
    (keep_the_claim, {"SLOT-2"}, ()),
    (start_at_once, {"JOB-2"}, ()),
    (one_by_one, {"QUEUE-3"}, ()),
    (no_sweep, {"JOB-1", "UNIT-1", "QUEUE-1", "QUEUE-3"}, ()),
    (old_agents_write, {"SLOT-3", "JOB-1"}, ("SEC-2",)),
    (last_comes_first, {"QUEUE-2"}, ()),
    (destroy_all_that_is_listed, {"UNIT-1"}, ()),
    (anybody_cancels, {"SEC-2"}, ()),
    (free_before_clean, {"UNIT-2"}, ()),
    (plants_warm.keep_without_cleaning, {"UNIT-2"}, ()),
    (plants_warm.called_by_two, {"UNIT-2"}, ()),
    (plants_warm.idle_counts_for_nothing, {"SLOT-1"}, ()),
    (plants_warm.idle_makes_no_room, {"QUEUE-1", "QUEUE-3"}, ()),
    (plants_warm.key_opens_again, {"SEC-2"}, ()),
    (plants_warm.any_job_of_the_worker, {"SEC-2"}, ()),
    (plants_ahead.takes_what_others_wait_for, {"QUEUE-2"}, ()),
    (plants_ahead.makes_past_the_limit, {"SLOT-1"}, ()),
)


@pytest.mark.parametrize(("plant", "labels", "blind"), PLANTED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_bug_is_found(
    plant: Plant, labels: set[str], blind: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    first = FIRST.get(getattr(plant, "__name__", ""), 0)
    found = runner.find([*SEEDS[first:], *SEEDS[:first]], blind=blind)
    assert found is not None, "no seed found it"
    assert found.label in labels, found.says


def test_a_failure_is_shrunk_and_says_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_the_claim(monkeypatch)
    assert main(["--seeds", "0:5"]) == 1
    told = capsys.readouterr().out
    assert "[SLOT-2]" in told
    assert "python -m simulation --seed 0 " in told
    assert " --without " in told
