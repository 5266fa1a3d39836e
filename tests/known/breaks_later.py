"""The same for what comes after a grant: making, losing, ending, cleaning, giving back, sweeping."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from penstock.domain.jobs import outcome
from penstock.domain.jobs.jobs import Job
from penstock.domain.pools import capacity as domain_resizing
from penstock.domain.pools import pools
from penstock.domain.pools.pools import Slot, SlotState
from penstock.domain.replies import ResultReceived
from penstock.domain.units import units as domain_units
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState
from penstock.kernel.errors import DriverError, Moved
from penstock.kernel.rows import Replace
from penstock.ports import Order
from penstock.system import transact
from penstock.usecases import cooldowns, sweep
from penstock.usecases import sweep as usecases_sweep
from penstock.usecases.pools import resize as pools_resize
from penstock.usecases.pools import scheduler, serving
from penstock.usecases.units import advance, driver_calls, listing, reconcile, release
from penstock.usecases.units.reconcile import Reconciled
from penstock.usecases.workers import agents


def new_id_each_time(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.advance.order_of`: each call of the driver has another id."""
    order = advance.order_of

    def fresh(on: Any, unit: Unit) -> Order:
        return replace(order(on, unit), id=f"w-{on.world.ulid()}")

    patch.setattr(advance, "order_of", fresh)


def unit_is_never_due(patch: pytest.MonkeyPatch) -> None:
    """`domain.units.units.Unit.deadline`: nothing follows if the message of a unit is lost."""
    patch.setattr(Unit, "deadline", None)


def job_is_never_due(patch: pytest.MonkeyPatch) -> None:
    """`domain.jobs.jobs.Job.deadline`: nothing follows if the flow of a job is lost."""
    patch.setattr(Job, "deadline", None)


def hands_over_unasked(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.advance._resource_ready`: a new resource is handed over even if its lease has ended."""

    def hand_over(on: Any, unit: Unit, made: Unit) -> None:
        on.store.commit([Replace(on.store.get(unit.key, Unit), made)])

    patch.setattr(advance, "_resource_ready", hand_over)


def made_for_anybody(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.advance._resource_ready`: a new resource goes to the claim that is first in the queue by then."""
    hand_over = advance._resource_ready

    def offered(on: Any, unit: Unit, made: Unit) -> None:
        on.store.commit(release._give_back(on, unit))
        serving.serve(on, [unit.lease.pool])
        hand_over(on, unit, made)

    patch.setattr(advance, "_resource_ready", offered)


def errors_are_final(patch: pytest.MonkeyPatch) -> None:
    """`usecases.cooldowns.create_failed`: any error of a driver fails the job."""
    refused = cooldowns.create_failed

    def fatal(on: Any, unit: Unit, leave: cooldowns.Permission, error: DriverError) -> Any:
        advance.fail_step(on, unit, "Unsatisfiable", str(error))
        return refused(on, unit, leave, error)

    patch.setattr(cooldowns, "create_failed", fatal)


def frees_what_is_not_clean(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.driver_calls.retry_later`: a slot comes back if cleaning fails, or takes half an hour."""
    again = driver_calls.retry_later

    def hasty(on: Any, unit: Unit, reason: str | None, after: int | None = None) -> None:
        is_old = on.world.now() - unit.since > timedelta(minutes=30)
        if unit.state is UnitState.DIRTY and (is_old or str(reason).startswith("cleaning failed")):
            transact(on, lambda: release._gone_changes(on, unit.id, CleanProof("nobody", on.world.now(), "nothing")))
            release.slot_freed(on, unit)
        else:
            again(on, unit, reason, after)

    patch.setattr(driver_calls, "retry_later", hasty)


def cleans_what_it_knows_of(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.release.destroy`: a unit is destroyed only if its row says that it was made."""
    put_back = release.destroy

    def only(on: Any, unit: Unit) -> None:
        if unit.creation.made:
            put_back(on, unit)
            return
        transact(
            on, lambda: release._gone_changes(on, unit.id, CleanProof("nobody", on.world.now(), "it was never made"))
        )
        release.slot_freed(on, unit)

    patch.setattr(release, "destroy", only)


def one_janitor(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.release.destroy`: one unit is cleaned at a time, the oldest first."""
    put_back = release.destroy

    def in_turn(on: Any, unit: Unit) -> None:
        rows = [*listing.every(on, UnitKind.RESOURCE), *listing.every(on, UnitKind.WORKER)]
        dirty = [row for row in rows if row.state is UnitState.DIRTY]
        if min(dirty, key=lambda row: row.since).id == unit.id:
            put_back(on, unit)
        else:
            driver_calls.retry_later(on, unit, None, 45)

    patch.setattr(release, "destroy", in_turn)


def frees_without_serving(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.release.slot_freed`: a freed slot is not granted to anybody."""
    go_on = release.slot_freed

    def silent(on: Any, unit: Unit) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(scheduler, "freed", lambda *_: [])
            go_on(on, unit)

    patch.setattr(release, "slot_freed", silent)


def resizes_without_serving(patch: pytest.MonkeyPatch) -> None:
    """`usecases.pools.resize.resize`: a changed limit grants nothing."""
    resize = pools_resize.resize

    def silent(on: Any, pool: str) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(scheduler, "freed", lambda *_: [])
            resize(on, pool)

    patch.setattr(pools_resize, "resize", silent)


def takes_from_holders(patch: pytest.MonkeyPatch) -> None:
    """`domain.pools.capacity._off`: a slot is withdrawn although somebody holds it."""

    def off(slot: Slot) -> Any:
        return pools.move(slot, Slot(pool=slot.pool, name=slot.name, state=SlotState.OFF, fence=slot.fence))

    patch.setattr(domain_resizing, "_off", off)


def outlives_its_lease(patch: pytest.MonkeyPatch) -> None:
    """`domain.units.units.end_lease`: a unit stays as it is when its lease ends."""
    patch.setattr(domain_units, "end_lease", lambda unit, reason, now, **_: unit)


def silence_is_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.advance._worker_silent`: a silent agent is waited for."""
    patch.setattr(advance, "_worker_silent", lambda on, unit: None)


def tries_without_end(patch: pytest.MonkeyPatch) -> None:
    """`domain.jobs.outcome._may_retry`: there is always a next attempt."""
    patch.setattr(outcome, "_may_retry", lambda job: True)


def tells_before_it_writes(patch: pytest.MonkeyPatch) -> None:
    """`usecases.workers.agents.report_finished`: the agent is answered although its report was not written."""
    finish = agents.report_finished

    def hasty(on: Any, caller: agents.Caller, *given: Any) -> Any:
        with suppress(Moved):
            return finish(on, caller, *given)
        return ResultReceived()

    patch.setattr(agents, "report_finished", hasty)


def remembers_before_it_writes(patch: pytest.MonkeyPatch) -> None:
    """`usecases.workers.agents.report_finished`: the end of a job is noted in memory before it is written."""
    finish, done = agents.report_finished, set()

    def once(on: Any, caller: agents.Caller, *given: Any) -> Any:
        if caller.job.id in done:
            return {}
        done.add(caller.job.id)
        return finish(on, caller, *given)

    patch.setattr(agents, "report_finished", once)


def nobody_looks_who_waits(patch: pytest.MonkeyPatch) -> None:
    """`usecases.sweep.serve_all`: a grant that was lost stays lost."""
    patch.setattr(sweep, "serve_all", lambda on, rows: ([], []))


def first_error_ends_the_pass(patch: pytest.MonkeyPatch) -> None:
    """`usecases.sweep.sweep`: an error at one row stops the others."""

    def sweep(on: Any) -> usecases_sweep.SweepResult:
        shards = on.store.shards(later=False)
        for due in [due for shard in shards for due in on.store.overdue(shard, on.world.now())]:
            try:
                usecases_sweep.nudge(on, due.kind, due.key)
            except Exception:
                break
        return usecases_sweep.SweepResult()

    patch.setattr(usecases_sweep, "sweep", sweep)


def leaves_strays(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.reconcile.reconcile`: nothing compares the rows with what exists outside."""
    patch.setattr(reconcile, "reconcile", lambda on, until: Reconciled())


def absence_counts(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.reconcile.reconcile`: a unit that its factory does not list counts as gone."""

    def destroy(on: Any, until: Any) -> Reconciled:
        there = set(on.drivers.factory("hand", {}).list())
        for unit in listing.every(on, UnitKind.WORKER):
            if unit.id not in there and unit.state is not UnitState.DIRTY:
                on.store.commit([Replace(unit, domain_units.end_lease(unit, "not listed", on.world.now()))])
        return Reconciled()

    patch.setattr(reconcile, "reconcile", destroy)


def rows_before_the_list(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.reconcile.reconcile`: it reads the rows before the list."""
    _destroy(patch, lambda on: {unit.id for unit in listing.every(on, UnitKind.WORKER)})


def starts_with_nothing(patch: pytest.MonkeyPatch) -> None:
    """`usecases.units.reconcile.reconcile`: a process that starts knows no machine, and destroys them all."""
    _destroy(patch, lambda on: set())


def _destroy(patch: pytest.MonkeyPatch, known: Any) -> None:
    def destroy(on: Any, until: Any) -> Reconciled:
        rows, driver = known(on), on.drivers.factory("hand", {})
        strays = [found for found in driver.list() if found not in rows]
        for found in strays:
            driver.destroy(found, on.world.now())
        return Reconciled(strays=len(strays))

    patch.setattr(reconcile, "reconcile", destroy)
