"""An operator asks for the console output of a worker's machine: its factory writes it into the worker's journal."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.domain.units.maintenance import CONSOLE, CONSOLE_AGAIN, CONSOLE_CHARS
from penstock.domain.units.units import Unit, UnitState, add_entry, unit_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Refused
from penstock.kernel.rows import Change, Delete, Replace
from penstock.testing.twin import Twin
from penstock.usecases.units import console, drivers, maintenance
from tests.usecases.steps import finish, hello, submit, worker_of
from tests.usecases.talkative import Talkative


@pytest.fixture
def worker(twin: Twin, ada: User) -> Unit:
    """A worker that runs a job."""
    job = submit(twin, ada)
    twin.run()
    hello(twin, job)
    return worker_of(twin, job)


def consoles(twin: Twin, unit: Unit) -> list[str]:
    row = twin.store.get(unit_key(unit.id), Unit)
    assert row
    return [entry.what for entry in row.journal.entries if entry.what.startswith(CONSOLE)]


def ask(twin: Twin, user: User, unit: Unit) -> None:
    maintenance.ask_console(twin.on, user, unit.id)
    twin.run()


def test_it_is_written_into_the_journal(twin: Twin, ada: User, worker: Unit) -> None:
    twin.drivers.hand = Talkative("i-1 is running; end of its console:\nlogin:")
    ask(twin, ada, worker)
    assert consoles(twin, worker) == [f"{CONSOLE}{ada.name}\ni-1 is running; end of its console:\nlogin:"]


def test_its_key_is_not(twin: Twin, ada: User, worker: Unit) -> None:
    """SEC-1: whoever reads it could say hello in the worker's place."""
    key = drivers.bootstrap_key(twin.on.signing_key(), worker.id)
    twin.drivers.hand = Talkative(f"key={key} ok")
    ask(twin, ada, worker)
    assert consoles(twin, worker) == [f"{CONSOLE}{ada.name}\nkey=(its key) ok"]


def test_a_factory_that_has_none_says_so(twin: Twin, ada: User, worker: Unit) -> None:
    ask(twin, ada, worker)
    assert consoles(twin, worker) == [f"{CONSOLE}{ada.name}\nhand has no console output of {worker.id}"]


def test_a_driver_that_cannot_tell_says_why(twin: Twin, ada: User, worker: Unit) -> None:
    twin.drivers.hand = Talkative(Misconfigured("no leave to read consoles"))
    ask(twin, ada, worker)
    assert "no leave to read consoles" in consoles(twin, worker)[0]


def test_who_asks_again_at_once_changes_nothing(twin: Twin, ada: User, worker: Unit) -> None:
    hand = twin.drivers.hand = Talkative("first")
    for _ in range(3):
        maintenance.ask_console(twin.on, ada, worker.id)
    twin.run()
    assert (len(consoles(twin, worker)), hand.asked) == (1, 1)
    twin.pass_time(CONSOLE_AGAIN.total_seconds() + 1)
    hand.tells = "second"
    ask(twin, ada, worker)
    assert consoles(twin, worker) == [f"{CONSOLE}{ada.name}", f"{CONSOLE}{ada.name}\nsecond"]


def test_of_two_who_write_at_a_time_one_does(twin: Twin, ada: User, worker: Unit) -> None:
    """A message comes twice, and both calls ask the driver before either has written."""

    class Slow(Talkative):
        def evidence(self, unit: str) -> str | None:
            if self.asked == 0:
                self.asked += 1
                console.read(twin.on, worker.id, ada.name)
            return super().evidence(unit)

    twin.drivers.hand = Slow("once")
    ask(twin, ada, worker)
    assert consoles(twin, worker) == [f"{CONSOLE}{ada.name}\nonce"]


def test_the_end_of_long_output_is_kept(twin: Twin, ada: User, worker: Unit) -> None:
    twin.drivers.hand = Talkative("x" * 9000 + "panic")
    ask(twin, ada, worker)
    (entry,) = consoles(twin, worker)
    assert entry == f"{CONSOLE}{ada.name}\n" + "x" * (CONSOLE_CHARS - 5) + "panic"


def test_a_worker_that_is_gone_has_none(twin: Twin, ada: User, worker: Unit) -> None:
    finish(twin, worker.lease.job)
    twin.run()
    gone = twin.store.get(unit_key(worker.id), Unit)
    assert gone
    assert gone.state is UnitState.GONE
    with pytest.raises(Refused, match="is gone since") as refused:
        maintenance.ask_console(twin.on, ada, worker.id)
    assert (refused.value.status, refused.value.code) == (409, "gone")
    console.read(twin.on, worker.id, "late")
    console.read(twin.on, "w-nobody", "late")
    assert consoles(twin, worker) == []
    with pytest.raises(Refused, match="there is no worker"):
        maintenance.ask_console(twin.on, ada, "w-nobody")


def test_only_its_factory_is_asked(twin: Twin, ada: User, worker: Unit) -> None:
    """The API has no leave to call a cloud: it sends a message."""
    hand = twin.drivers.hand = Talkative("late")
    maintenance.ask_console(twin.on, ada, worker.id)
    assert hand.asked == 0
    assert [message for _, queue, message in twin.queues.messages if queue == "factory"][-1] == {
        "unit": worker.id,
        "do": "console",
        "by": ada.name,
    }


def test_what_is_written_meanwhile_stays(twin: Twin, ada: User, worker: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal is read anew, and written only over the row that was read."""
    commit, others = twin.store.commit, ["its disk fills up", ""]

    def after_another(changes: Sequence[Change]) -> bool:
        row = twin.store.get(unit_key(worker.id), Unit)
        assert row
        if what := others.pop(0) if others else "":
            commit([Replace(row, add_entry(row, twin.world.now(), what))])
        return commit(changes)

    monkeypatch.setattr(twin.store, "commit", after_another)
    console.read(twin.on, worker.id, ada.name)
    row = twin.store.get(unit_key(worker.id), Unit)
    assert row
    assert [entry.what.partition(",")[0] for entry in row.journal.entries[-2:]] == [
        "its disk fills up",
        "console output",
    ]


def test_a_worker_whose_row_goes_meanwhile_has_none(twin: Twin, ada: User, worker: Unit) -> None:
    class Last(Talkative):
        def evidence(self, unit: str) -> str | None:
            row = twin.store.get(unit_key(unit), Unit)
            assert row
            twin.store.commit([Delete(row)])
            return super().evidence(unit)

    twin.drivers.hand = Last("too late")
    console.read(twin.on, worker.id, ada.name)
    assert twin.store.get(unit_key(worker.id), Unit) is None
