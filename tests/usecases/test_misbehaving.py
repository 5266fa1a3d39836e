"""Whatever a driver does is a failure of its maker: it is counted, its job is told, and nobody else waits. [UNIT-1]"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.domain.units import retries
from penstock.domain.units.units import CLEAN_WITHIN, STEP_WITHIN, CleanProof, Unit, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import NoCapacity, RateLimited, Shortage, TimeLimit, Unknown
from penstock.kernel.rows import Replace
from penstock.ports import MachineFate, MachineNotice, NotYet, Ready
from penstock.testing.twin import START, Twin
from penstock.usecases import cooldowns
from penstock.usecases.jobs import cancel, jobs
from penstock.usecases.units import advance, drivers
from tests.usecases.exact import sent
from tests.usecases.races import Died
from tests.usecases.steps import finish, hello, job_of, live, submit, sweep, told, worker_of
from tests.usecases.strays import compare_all


class Odd(Exception):
    """An error that cannot even be printed."""

    def __str__(self) -> str:
        raise ValueError("no text")


def raises(error: BaseException) -> Callable[..., Any]:
    def act(*_: Any) -> Any:
        raise error

    return act


def returns(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


def deep() -> Any:
    found: Any = {}
    for _ in range(100_000):
        found = {"a": found}
    return found


def noted(error: Any, notes: Any) -> Any:
    error.notes = notes
    return error


NAIVE = datetime(2026, 1, 1)  # a driver that forgot the time zone
RAISED = {
    "ValueError": (raises(ValueError("no such thing")), "raised ValueError: no such thing"),
    "SystemExit": (raises(SystemExit(3)), "raised SystemExit: 3"),
    "KeyboardInterrupt": (raises(KeyboardInterrupt()), "raised KeyboardInterrupt"),
    "GeneratorExit": (raises(GeneratorExit()), "raised GeneratorExit"),
    "RecursionError": (raises(RecursionError("too deep")), "raised RecursionError: too deep"),
    "MemoryError": (raises(MemoryError()), "raised MemoryError"),
    "Odd": (raises(Odd()), "raised Odd"),
    "NoAnswer": (raises(TimeLimit()), "did not answer within 60 s"),
}
WRONG_ERRORS = {
    "seconds that are a text": RateLimited("slow", "5"),  # type: ignore[arg-type]
    "seconds below 0": RateLimited("slow", -1),
    "seconds of a year": RateLimited("slow", 365 * 86400),
    "calls that are a number": RateLimited("slow", calls=5),  # type: ignore[arg-type]
    "a shortage that is a text": NoCapacity("none", ["all"]),  # type: ignore[list-item]
    "a shortage of nothing": NoCapacity("none", [Shortage(None, "why")]),  # type: ignore[arg-type]
    "a shortage without a reason": NoCapacity("none", [Shortage("all", None)]),  # type: ignore[arg-type]
    "a number for whether all was tried": NoCapacity("none", untried=1),  # type: ignore[arg-type]
    "a code that is a number": Unknown("odd", 5),  # type: ignore[arg-type]
    "notes that are a text": noted(Unknown("odd"), "notes"),
    "notes that are no JSON": noted(Unknown("odd"), {"a": object()}),
    "notes without end": noted(Unknown("odd"), deep()),
    "notes without measure": noted(Unknown("odd"), {"a": "x" * 16 * 1024}),
}
WRONG_ANSWERS = {
    "nothing": None,
    "a number": 5,
    "a time that is a text": NotYet("soon"),  # type: ignore[arg-type]
    "true": NotYet(True),
    "a time below 0": NotYet(-1),
    "a year": NotYet(365 * 86400),
    "half a second": NotYet(0.5),  # type: ignore[arg-type]
    "a reason that is none": NotYet(5, b"soon"),  # type: ignore[arg-type]
    "notes": NotYet(5, notes=[1]),  # type: ignore[arg-type]
}
WRONG_CREATIONS = WRONG_ANSWERS | {
    "a proof": CleanProof("somebody", START, "all"),
    "metadata that is a list": Ready([1]),  # type: ignore[arg-type]
    "public keys that are a text": Ready(public="all"),
    "public keys that are numbers": Ready(public=[1]),  # type: ignore[list-item]
    "no public keys": Ready(public=None),  # type: ignore[arg-type]
    "what it proves": Ready(proves=[1]),  # type: ignore[list-item]
    "shortages": Ready(shortages=["all"]),  # type: ignore[list-item]
    "no shortages": Ready(shortages=None),  # type: ignore[arg-type]
    "a time without a zone": Ready(expires=NAIVE),
    "a time that is a number": Ready(expires=5),  # type: ignore[arg-type]
    "notes of a unit": Ready(notes=5),  # type: ignore[arg-type]
}
WRONG_ENDINGS = WRONG_ANSWERS | {
    "a unit": Ready(),
    "nobody": CleanProof(None, START, "all"),  # type: ignore[arg-type]
    "no check": CleanProof("somebody", START, None),  # type: ignore[arg-type]
    "no time": CleanProof("somebody", None, "all"),  # type: ignore[arg-type]
    "a time without a zone": CleanProof("somebody", NAIVE, "all"),
    "a lag that is a text": CleanProof("somebody", START, "all", "5"),  # type: ignore[arg-type]
}
WRONG_LISTS = {
    "nothing": None, "a text": "w-1", "bytes": b"w-1", "a mapping": {"w-1": 1}, "numbers": [1], "a number": 5,
}  # fmt: skip


def failures_of(twin: Twin, maker: str = "factory/hand") -> dict[str, int]:
    return {row.code: row.count for row in cooldowns.failures(twin.on, maker)}


@pytest.mark.parametrize("code", RAISED)
def test_whatever_it_raises_is_counted_and_its_job_is_told(twin: Twin, ada: User, code: str) -> None:
    act, text = RAISED[code]
    create, twin.drivers.hand.create = twin.drivers.hand.create, act  # type: ignore[method-assign]
    job = submit(twin, ada)
    twin.run()
    assert failures_of(twin) == {f"Unknown:{code}": 1}
    assert text in str(worker_of(twin, job).step.reason)
    assert text in jobs.explain(twin.on, job_of(twin, job)).summary
    assert any(text in line for line in told(twin, job))
    twin.drivers.hand.create = create  # type: ignore[method-assign]
    twin.pass_time(15)
    twin.run()
    assert worker_of(twin, job).creation.made, "it is tried again after the first pause"


@pytest.mark.parametrize("what", WRONG_ERRORS)
def test_an_error_with_fields_of_the_wrong_type_is_counted(twin: Twin, ada: User, what: str) -> None:
    twin.drivers.hand.create = raises(WRONG_ERRORS[what])  # type: ignore[method-assign]
    job = submit(twin, ada)
    twin.run()
    assert failures_of(twin) == {"Unknown:WrongAnswer": 1}
    assert f"the driver raised {type(WRONG_ERRORS[what]).__name__} with" in str(worker_of(twin, job).step.reason)


@pytest.mark.parametrize("what", WRONG_CREATIONS)
def test_a_wrong_answer_of_a_create_is_counted(twin: Twin, ada: User, what: str) -> None:
    twin.drivers.hand.create = returns(WRONG_CREATIONS[what])  # type: ignore[method-assign]
    job = submit(twin, ada)
    twin.run()
    assert failures_of(twin) == {"Unknown:WrongAnswer": 1}
    assert "the driver returned" in str(worker_of(twin, job).step.reason)
    assert worker_of(twin, job).state is UnitState.CREATING


@pytest.mark.parametrize("what", WRONG_ENDINGS)
def test_a_wrong_answer_of_a_destroy_frees_nothing(twin: Twin, ada: User, what: str) -> None:
    """UNIT-2: only a proof does."""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    twin.drivers.hand.destroy = returns(WRONG_ENDINGS[what])  # type: ignore[method-assign]
    finish(twin, job)
    twin.run()
    (unit,) = live(twin, job)
    assert unit.state is UnitState.DIRTY
    assert failures_of(twin) == {"Unknown:WrongAnswer": 1}
    assert "cleaning failed: Unknown: the driver returned" in str(unit.step.reason)


@pytest.mark.parametrize("what", WRONG_LISTS)
def test_a_wrong_list_is_compared_with_nothing(twin: Twin, ada: User, what: str) -> None:
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    twin.drivers.hand.list = returns(WRONG_LISTS[what])  # type: ignore[method-assign]
    assert compare_all(twin).unlisted == 1
    assert failures_of(twin) == {"Unknown:WrongAnswer": 1}
    assert worker_of(twin, job).state is UnitState.READY


def test_what_is_right_is_left_as_it_is(twin: Twin, ada: User) -> None:
    """The longest of all that has a bound."""
    said = [
        RateLimited("slow", 7 * 86400, "reads"), RateLimited("slow", 0), NoCapacity("none", (Shortage("all", "why"),)),
        noted(Unknown("odd", "E1"), {"a": "x" * (16 * 1024 - 9)}),
    ]  # fmt: skip
    on, unit = twin.on, worker_of(twin, submit_and_run(twin, ada))
    order = advance.order_of(on, unit)
    for error in said:
        twin.drivers.hand.create = raises(error)  # type: ignore[method-assign]
        with pytest.raises(type(error)) as raised:
            drivers.create(on, unit, twin.drivers.hand, order)
        assert raised.value is error
    for answer in (NotYet(0), NotYet(7 * 86400, "soon", notes={})):
        twin.drivers.hand.create = returns(answer)  # type: ignore[method-assign]
        assert drivers.create(on, unit, twin.drivers.hand, order) == answer
    whole = Ready({"a": 1}, (Shortage("all", "why"),), ("all",), {"b": 1}, START, {"a"})
    twin.drivers.hand.create = returns(whole)  # type: ignore[method-assign]
    assert drivers.create(on, unit, twin.drivers.hand, order) is whole
    for proof in (CleanProof("it", START, "all", 0), CleanProof("it", START, "all", 7 * 86400)):
        twin.drivers.hand.destroy = returns(proof)  # type: ignore[method-assign]
        assert drivers.destroy(on, "factory/hand", twin.drivers.hand, "w-1") is proof
    for ids in (iter(["w-1"]), ["w-1"], {"w-1"}, ("w-1",)):
        twin.drivers.hand.list = returns(ids)  # type: ignore[method-assign]
        assert drivers.list_ids(on, "factory/hand", twin.drivers.hand) == {"w-1"}


def submit_and_run(twin: Twin, ada: User) -> str:
    job = submit(twin, ada)
    twin.run()
    return job


@pytest.mark.parametrize("act", [raises(ValueError("bad")), raises(TimeLimit()), returns(None)])
def test_a_driver_that_cannot_even_be_made_is_counted(
    twin: Twin, ada: User, act: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twin.drivers, "factory", act)
    job = submit_and_run(twin, ada)
    assert sum(failures_of(twin).values()) == 1
    assert "Unknown: the driver" in jobs.explain(twin.on, job_of(twin, job)).summary


def test_only_the_unit_of_the_driver_that_fails_waits(twin: Twin, ada: User) -> None:
    twin.drivers.hand.says = [ValueError("only the first")]
    first, second = submit(twin, ada), submit(twin, ada)
    twin.run()
    assert sorted(bool(worker_of(twin, job).creation.made) for job in (first, second)) == [False, True]


def test_a_call_that_left_no_answer_is_counted_and_named(twin: Twin, ada: User) -> None:
    """It ended its function, twice: the first message could as well have been lost."""
    twin.drivers.hand.says = [Died(), Died()]
    job = submit(twin, ada)
    with pytest.raises(Died):
        twin.run()
    assert worker_of(twin, job).step.busy is None, "a call that comes in time costs no write of its own"
    twin.pass_time(STEP_WITHIN.total_seconds())
    begun = twin.world.now()
    with pytest.raises(Died):
        advance.advance(twin.on, worker_of(twin, job).id)
    assert worker_of(twin, job).step.busy == begun + CLEAN_WITHIN
    assert failures_of(twin) == {}
    twin.pass_time(CLEAN_WITHIN.total_seconds() - 1)
    advance.advance(twin.on, worker_of(twin, job).id)
    assert not worker_of(twin, job).creation.made, "the function of that call may still live"
    sweep(twin, 1)
    assert failures_of(twin) == {"Unknown:NoAnswer": 1}
    assert "left no answer: it hung, or ended its process" in jobs.explain(twin.on, job_of(twin, job)).summary
    twin.pass_time(15)
    twin.run()
    assert worker_of(twin, job).creation.made
    assert worker_of(twin, job).step.busy is None


def test_a_destroy_that_left_no_answer_is_counted_and_named(twin: Twin, ada: User) -> None:
    job = submit_and_run(twin, ada)
    hello(twin, job)
    twin.drivers.hand.stuck = Died()
    with pytest.raises(Died):
        finish(twin, job)
    twin.pass_time(STEP_WITHIN.total_seconds())
    (unit,) = live(twin, job)
    with pytest.raises(Died):
        advance.advance(twin.on, unit.id)
    twin.drivers.hand.stuck = None
    twin.pass_time(CLEAN_WITHIN.total_seconds())
    advance.advance(twin.on, unit.id)
    assert failures_of(twin) == {"Unknown:NoAnswer": 1}
    twin.pass_time(15)
    twin.run()
    assert not live(twin, job)


def write_during_the_next(twin: Twin, call: str, unit: Unit) -> None:
    """Let somebody write a unit's row while its driver is asked."""
    ask = getattr(twin.drivers.hand, call)

    def meddled(*given: Any) -> Any:
        setattr(twin.drivers.hand, call, ask)
        row = twin.store.get(unit.key, Unit)
        assert row
        assert twin.store.commit([Replace(row, row)])
        return ask(*given)

    setattr(twin.drivers.hand, call, meddled)


def test_a_late_call_whose_answer_lost_a_race_is_made_again_at_once(twin: Twin, ada: User) -> None:
    """Somebody wrote the unit's row while the driver was asked: that is no failure of the driver."""
    job = submit(twin, ada)
    while not live(twin, job):
        assert twin.deliver()
    twin.queues.messages.clear()
    (unit,) = live(twin, job)
    twin.pass_time(STEP_WITHIN.total_seconds())
    write_during_the_next(twin, "create", unit)
    advance.advance(twin.on, unit.id)
    assert not worker_of(twin, job).creation.made
    assert sent(twin) == [("factory", {"unit": unit.id})]
    advance.advance(twin.on, unit.id)
    assert worker_of(twin, job).creation.made
    assert failures_of(twin) == {}


def test_a_late_destroy_whose_answer_lost_a_race_is_made_again_at_once(twin: Twin, ada: User) -> None:
    job = submit_and_run(twin, ada)
    hello(twin, job)
    twin.drivers.hand.stuck = NotYet(5)
    finish(twin, job)
    (unit,) = live(twin, job)
    twin.pass_time(STEP_WITHIN.total_seconds() + 5)
    sent(twin)
    write_during_the_next(twin, "destroy", unit)
    advance.advance(twin.on, unit.id)
    (unit,) = live(twin, job)
    assert (unit.step.busy, sent(twin)) == (None, [("factory", {"unit": unit.id})])


def test_what_was_asked_for_before_its_lease_ended_is_not_missed(twin: Twin, ada: User) -> None:
    job = submit_and_run(twin, ada)
    unit = worker_of(twin, job)
    begun = twin.world.now()
    step = retries.replace(unit.step, busy=begun + CLEAN_WITHIN)
    asked = retries.replace(unit, step=step, since=begun)
    over = begun + CLEAN_WITHIN
    assert retries.unanswered(asked, over) == begun
    assert retries.unanswered(asked, over - timedelta(seconds=1)) is None
    assert retries.unanswered(retries.replace(asked, since=begun + timedelta(seconds=1)), over) is None
    assert retries.unanswered(retries.replace(asked, step=retries.replace(step, busy=None)), over) is None


def test_cancelling_a_job_whose_driver_fails_puts_its_unit_back(twin: Twin, ada: User) -> None:
    twin.drivers.hand.create = raises(ValueError("bad"))  # type: ignore[method-assign]
    job = submit_and_run(twin, ada)
    cancel.cancel(twin.on, ada, job)
    twin.run()
    assert not live(twin, job)


def test_a_factory_that_reads_no_events_has_nothing_to_say_of_one(twin: Twin) -> None:
    assert drivers.read_event(twin.on, "cloud", twin.drivers.hand, {"source": "a.cloud"}) is None


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"x": "y" * drivers.METADATA_BYTES}, "bytes; 16384 at most"),
        ({"x": object()}, "is not JSON"),
        (deep(), "is not JSON"),
    ],
    ids=["big", "no JSON", "deep"],
)
def test_what_a_factory_says_of_a_machine_has_room_in_its_row(twin: Twin, ada: User, metadata: Any, why: str) -> None:
    """It could not be written: the same machine would be ordered again and again, and nobody would read why."""
    twin.drivers.hand.create = returns(Ready(metadata))  # type: ignore[method-assign]
    job = submit(twin, ada)
    twin.run()
    assert failures_of(twin) == {"Misconfigured": 1}
    assert why in jobs.explain(twin.on, job_of(twin, job)).summary


def test_texts_notices_and_notes_are_checked_too() -> None:
    notice = MachineNotice("w-1", MachineFate.LOST, "gone")
    assert [drivers.text(one) for one in ("a", None)] == ["a", None]
    assert [drivers.notice(one) for one in (notice, None)] == [notice, None]
    for check, wrong in ((drivers.text, 5), (drivers.notice, "gone")):
        with pytest.raises(Unknown, match="the driver returned"):
            check(wrong)
    with pytest.raises(Unknown, match="notes that are no JSON object"):
        drivers.creation(NotYet(5, notes=[("a", 1)]))  # type: ignore[arg-type]


def test_a_wrong_pause_is_named_and_a_big_one_cut() -> None:
    for wrong, named in ((-1, "after -1,"), ("x" * 99, f"after '{'x' * 49},"), ([1], "after list,")):
        with pytest.raises(Unknown, match=named):
            drivers.ending(NotYet(wrong))  # type: ignore[arg-type]
    assert drivers.ending(NotYet(5)) == NotYet(5)
