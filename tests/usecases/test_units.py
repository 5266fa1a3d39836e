"""What was made is put back, and only what is clean is given again. [UNIT-1] [UNIT-2] [ART-1] [ART-2]"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.artifacts import artifacts
from penstock.domain.artifacts.artifacts import Artifact, artifact_key
from penstock.domain.artifacts.volumes import object_name
from penstock.domain.commands import AgentFile
from penstock.domain.jobs.jobs import Outcome
from penstock.domain.pools.pools import Slot, SlotState, collection
from penstock.domain.units.units import CleanProof, Unit, UnitKind, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured
from penstock.kernel.rows import Change, Create, Replace
from penstock.ports import NotYet, Order
from penstock.testing.fake import Cloud, FakeDriver, Faults
from penstock.testing.twin import START, Twin
from penstock.usecases.artifacts import outputs
from penstock.usecases.jobs import cancel
from penstock.usecases.units import advance, release
from penstock.usecases.workers import agents
from tests.usecases.inputs import digest
from tests.usecases.steps import (
    TOKEN,
    assert_all_is_put_back,
    finish,
    hello,
    job_of,
    live,
    slots,
    submit,
    sweep,
    worker_of,
)


def test_what_no_row_knows_is_destroyed_and_what_is_held_is_not(twin: Twin, ada: User) -> None:
    """UNIT-1: strays go; what a row holds stays; an untouched list of nothing proves nothing."""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    held = worker_of(twin, job).id
    twin.drivers.hand.create(Order("w-stray", "linux", "1"))
    for _ in range(14):
        sweep(twin)
        agents.heartbeat(twin.on, agents.authenticate(twin.on, job, TOKEN))
    assert list(twin.drivers.hand.made) == [held]
    twin.drivers.hand.list = lambda: []  # type: ignore[method-assign]
    sweep(twin, 31)
    assert worker_of(twin, job).state is UnitState.READY
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


@pytest.mark.parametrize("lost", [0.0, 1.0], ids=["answered", "answer lost"])
def test_what_was_just_made_and_is_not_seen_yet_is_not_taken_for_gone(twin: Twin, ada: User, lost: float) -> None:
    """UNIT-1: it waited for capacity for longer than looks may be behind, and was cancelled right after it was made."""
    cloud = Cloud(twin.world.now, faults=Faults(unseen=50, short=("fake/all",)))
    twin.drivers.hand = FakeDriver({}, {}, cloud)  # type: ignore[assignment]
    job = submit(twin, ada)
    twin.run()
    cloud.faults = Faults(unseen=50, lost=lost)
    while not cloud.machines:
        twin.pass_time(10)
        twin.run()
    cancel.cancel(twin.on, ada, job)
    for _ in range(40):
        twin.run()
        if slots(twin, "target/linux", SlotState.FREE) == ["1", "2"]:
            break
        twin.pass_time(10)
    assert not cloud.machines, "its slot was given back, and it was there"
    assert worker_of(twin, job).state is UnitState.GONE


def test_a_worker_that_is_made_after_it_was_destroyed_is_found(twin: Twin, ada: User) -> None:
    """UNIT-1: an order that comes through late leaves a machine that no row wants."""
    job = submit(twin, ada)
    twin.run()
    order = twin.drivers.hand.made[worker_of(twin, job).id]
    cancel.cancel(twin.on, ada, job)
    twin.run()
    twin.drivers.hand.create(order)
    for _ in range(14):
        sweep(twin)
    assert_all_is_put_back(twin)


def test_nothing_dirty_is_granted_again(twin: Twin, ada: User) -> None:
    """UNIT-2: a slot goes from dirty to free only with the record that cleaning succeeded."""
    first = submit(twin, ada)
    twin.run()
    hello(twin, first)
    worker = worker_of(twin, first)
    hand, destroy = twin.drivers.hand, twin.drivers.hand.destroy

    def failing(unit: str, now: Any) -> CleanProof:
        raise Misconfigured("the key was revoked")

    hand.destroy = failing  # type: ignore[method-assign]
    finish(twin, first)
    for _ in range(5):
        sweep(twin, 700)
    assert worker.lease.slot in slots(twin, "target/linux", SlotState.HELD)
    assert "the key was revoked" in str(worker_of(twin, first).step.reason)
    hand.destroy = destroy  # type: ignore[method-assign]
    sweep(twin, 700)
    proof = worker_of(twin, first).cleaning.proof
    assert proof
    assert proof.by == "hand"
    assert_all_is_put_back(twin)


FILE = AgentFile("/work/x", size=3, sha256=digest(b"abc"))


def test_an_upload_that_never_arrives_is_deleted_and_one_that_did_is_not(twin: Twin, ada: User) -> None:
    """ART-2: un-owned uploads go after 12 hours; ART-1: nothing that is committed is deleted."""
    job = submit(twin, ada)
    twin.run()
    caller = hello(twin, job)
    files = (FILE, replace(FILE, path="/work/lost"))
    kept, lost = (outputs.begin(twin.on, caller.job, [each]).uploads[0].id for each in files)
    for name in (kept, lost):
        twin.objects.objects[object_name(name)] = b"abc"
    outputs.commit(twin.on, caller.job, [kept])
    sweep(twin, 11 * 3600)
    assert twin.store.get(artifact_key(lost), Artifact)
    sweep(twin, 3600)
    assert not twin.store.get(artifact_key(lost), Artifact)
    assert list(twin.objects.objects) == [object_name(kept)]


def test_bytes_go_before_the_row_that_says_that_they_exist(twin: Twin, ada: User) -> None:
    """ART-1: if deleting fails, the row stays and says so; it is tried again."""
    row = artifacts.stray(artifacts.id_of("1", "A"), 1, START)
    twin.store.commit([Create(row)])

    def failing(name: str) -> None:
        raise OSError(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.objects, "delete", failing)
        assert (sweep(twin).untidied, sweep(twin, 30).untidied) == (1, 0)
    assert twin.store.get(row.key, Artifact)
    sweep(twin, 61)
    assert not twin.store.get(row.key, Artifact)


def test_a_resource_is_not_given_back_while_its_worker_may_still_use_it(twin: Twin, ada: User) -> None:
    """UNIT-2: the worker goes first, whatever order the messages come in."""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    hand, destroy = twin.drivers.hand, twin.drivers.hand.destroy
    hand.destroy = lambda unit, now: NotYet(5, "it is still going down")  # type: ignore[method-assign]
    finish(twin, job)
    for _ in range(3):
        for unit in live(twin, job):
            advance.advance(twin.on, unit.id)
        sweep(twin, 46)
    assert slots(twin, "resource/bench", SlotState.HELD) == ["bench-1"]
    hand.destroy = destroy  # type: ignore[method-assign]
    sweep(twin, 46)
    sweep(twin, 46)
    assert_all_is_put_back(twin)


def test_a_slot_that_somebody_else_holds_is_not_freed(twin: Twin, ada: User) -> None:
    """SLOT-3: cleaning a unit frees the slot only of its own fence."""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    (slot,) = twin.store.find(collection("target/linux"), "held#", Slot)
    twin.store.commit([Replace(slot, replace(slot, fence=slot.fence + 1, unit="w-other"))])
    finish(twin, job)
    assert worker_of(twin, job).state is UnitState.GONE
    assert [held.unit for held in twin.store.find(collection("target/linux"), "held#", Slot)] == ["w-other"]


def test_looks_that_coincide_do_not_add_up(twin: Twin, ada: User) -> None:
    """Rule 5: a look that is not sooner than the one that is on its way sends no other after itself."""
    hand = twin.drivers.hand
    hand.says = [NotYet(60, "it is being made")] * 1000
    job = submit(twin, ada)
    twin.run()
    for _ in range(30):
        before = len(hand.says)
        sweep(twin, 60)
        assert before - len(hand.says) <= 2, "the one on its way, and the sweep's"
    assert len(twin.queues.messages) == 1
    hand.says.clear()
    sweep(twin, 60)
    hello(twin, job)
    finish(twin, job)
    assert_all_is_put_back(twin)


def test_a_look_that_comes_early_is_followed_by_a_sooner_one(twin: Twin, ada: User) -> None:
    """Rule 5: whose turn it becomes is looked at as soon as its driver says, not when it had been waiting for."""
    hand = twin.drivers.hand
    hand.says = [NotYet(600, "it is being made"), NotYet(5, "it is nearly there")]
    job = submit(twin, ada)
    twin.run()
    twin.queues.advance(worker_of(twin, job).id, is_worker=True)
    twin.run()
    twin.pass_time(6)
    twin.run()
    assert worker_of(twin, job).creation.made


def test_a_race_that_was_lost_before_it_is_destroyed_is_run_again_at_once(twin: Twin, ada: User) -> None:
    """QUEUE-1: a slot does not wait for the sweep because DynamoDB refused one write."""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    commit, lost = twin.store.commit, []

    def losing(changes: Sequence[Change]) -> bool:
        first = changes[0]
        is_begin = (
            len(changes) == 1
            and isinstance(first, Replace)
            and isinstance(first.row, Unit)
            and first.row.cleaning.begun
        )
        if is_begin and not lost:
            lost.append(first)
            return False
        return commit(changes)

    twin.store.commit = losing  # type: ignore[method-assign]
    twin.drivers.makes_nothing = lambda driver: False  # type: ignore[method-assign]
    finish(twin, job)
    twin.pass_time(1)
    twin.run()
    assert lost
    assert [slot.name for slot in twin.store.find(collection("resource/bench"), "free#", Slot)] == ["bench-1"]


def test_who_waits_for_its_turn_to_be_destroyed_is_looked_at_again(twin: Twin, ada: User) -> None:
    """UNIT-2: whoever is released before it wakes it; if that message is lost, the sweep does."""
    job = submit(twin, ada, resources=["bench"])
    twin.run()
    hello(twin, job)
    twin.drivers.hand.stuck = NotYet(600, "it hangs")
    finish(twin, job)
    bench = next(unit for unit in live(twin, job) if unit.is_a is UnitKind.RESOURCE)
    twin.pass_time(300)
    release.destroy(twin.on, bench)
    found = twin.store.get(bench.key, Unit)
    assert found
    assert found.state is UnitState.DIRTY
    assert found.due
    assert found.due > twin.world.now()
    assert found.version == bench.version + 1
