"""Where a factory can tell its machines, the key alone lets nobody in. [SEC-2]"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Outcome, State
from penstock.domain.pools.pools import Warm
from penstock.domain.replies import Assignment, Idle
from penstock.domain.units.units import Unit, UnitKind
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Refused
from penstock.testing.site import site_toml
from penstock.testing.twin import START, ScriptedDriver, Twin
from penstock.usecases.jobs.flow import LeaseGone
from penstock.usecases.site import apply
from penstock.usecases.units import maintenance, prewarm
from penstock.usecases.units.drivers import bootstrap_key
from penstock.usecases.workers import agents
from tests.usecases.exact import all_units, pool_row, put
from tests.usecases.races import before_the_next_commit
from tests.usecases.steps import TOKEN, finish, job_of, submit, worker_of

SITE = site_toml(
    factories={"strict": {"driver": "hand", "identity": "papers"}, "loose": "hand"},
    targets={
        "default": {"factory": "strict"},
        "other": {"factory": "loose"},
        "warm": {"factory": "strict", "warm": {"max": 1}},
    },
)


class Knowing(ScriptedDriver):
    """A factory whose machines show the id of their worker."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Mapping[str, str], Mapping[str, Any]]] = []

    def identity_mismatch(self, shown: Mapping[str, str], made: Mapping[str, Any]) -> str | None:
        self.asked.append((shown, made))
        return None if shown["document"] == made["id"] else f"it is {shown['document'] or 'nobody'}"


@pytest.fixture
def hand() -> Knowing:
    return Knowing()


@pytest.fixture
def twin(hand: Knowing) -> Twin:
    made = Twin()
    made.drivers.hand = hand
    apply.apply(made.on, "admin", SITE, "site.toml")
    made.run()
    return made


def hello(twin: Twin, unit: Unit, document: str, token: str = TOKEN) -> Assignment | Idle:
    key = bootstrap_key(twin.on.signing_key(), unit.id)
    said = agents.hello(twin.on, Hello(unit.id, key, token, document=document, signature="signed" if document else ""))
    twin.run()
    return said


def refused(twin: Twin, unit: Unit, document: str) -> tuple[int, str]:
    with pytest.raises(Refused) as error:
        hello(twin, unit, document)
    return error.value.status, error.value.code


def started(twin: Twin, ada: User, target: str = "default") -> tuple[str, Unit]:
    job = submit(twin, ada, target=target)
    twin.run()
    return job, worker_of(twin, job)


def test_the_machine_that_was_made_is_let_in(twin: Twin, ada: User, hand: Knowing) -> None:
    job, worker = started(twin, ada)
    assert hello(twin, worker, worker.id).job == job
    assert hand.asked == [({"document": worker.id, "signature": "signed"}, {"id": worker.id})]
    finish(twin, job)
    assert job_of(twin, job).end.outcome is Outcome.SUCCEEDED


def test_another_machine_is_refused_with_the_right_key_and_the_journal_says_it_once(twin: Twin, ada: User) -> None:
    job, worker = started(twin, ada)
    for _ in range(3):
        assert refused(twin, worker, "another") == (401, "wrong-machine")
    assert refused(twin, worker, "") == (401, "no-identity")
    said = [entry.what for entry in worker_of(twin, job).journal.entries]
    begin = "a machine that had its key was refused: it is "
    assert [what for what in said if what.startswith(begin)] == [f"{begin}another", f"{begin}nobody"]
    assert job_of(twin, job).state is State.ACQUIRING
    assert worker_of(twin, job).session.token_hash is None
    assert hello(twin, worker, worker.id).job == job, "the right one is let in after all"


def test_what_is_noted_of_a_stranger_overtakes_nothing(twin: Twin, ada: User) -> None:
    """An operator drains the worker in the moment in which its journal is written."""
    job, worker = started(twin, ada)
    root = User(name="root", privileges=("admin",), created=START)
    before_the_next_commit(twin, lambda: maintenance.drain(twin.on, root, UnitKind.WORKER, worker.id, "no more"))
    assert refused(twin, worker, "another") == (401, "wrong-machine")
    assert worker_of(twin, job).drain


def test_who_has_a_wrong_key_is_not_even_asked(twin: Twin, ada: User, hand: Knowing) -> None:
    _, worker = started(twin, ada)
    with pytest.raises(Refused) as error:
        agents.hello(twin.on, Hello(worker.id, "no", TOKEN, document=worker.id))
    assert (error.value.code, hand.asked) == ("wrong-key", [])


def test_a_hello_that_comes_before_what_was_made_is_written_comes_again(twin: Twin, ada: User, hand: Knowing) -> None:
    """The function may die between the launch and the row: the next step finds the machine, and writes it."""
    job, worker = started(twin, ada)
    put(twin, worker, made=None, metadata={}, due=twin.world.now())
    worker = worker_of(twin, job)
    assert refused(twin, worker, worker.id) == (429, "not-yet")
    assert hand.asked == []
    twin.take("factory", {"unit": worker.id})
    assert hello(twin, worker, worker.id).job == job


def test_a_hello_that_is_repeated_is_known_by_its_token(twin: Twin, ada: User, hand: Knowing) -> None:
    job, worker = started(twin, ada)
    hello(twin, worker, worker.id)
    assert hello(twin, worker, "").job == job
    assert len(hand.asked) == 1
    with pytest.raises(Refused) as error:
        hello(twin, worker, worker.id, "u" * 43)
    assert error.value.code == "token-taken"


def returning(worker: Unit, document: str, **more: Any) -> Hello:
    """What an agent says after its first job."""
    return Hello(worker.id, "", "u" * 43, previous=TOKEN, document=document, signature="signed", **more)


def test_after_its_first_job_an_agent_is_known_by_its_token_and_its_machine(
    twin: Twin, ada: User, hand: Knowing
) -> None:
    job, worker = started(twin, ada, "warm")
    hello(twin, worker, worker.id)
    finish(twin, job)
    second = submit(twin, ada, target="warm")
    twin.run()
    ask = returning(worker, worker.id, cleaned="nothing of the job is left")
    said = agents.hello(twin.on, ask)
    twin.run()
    said = agents.hello(twin.on, ask) if isinstance(said, Idle) else said
    assert said.job == second
    assert len(hand.asked) > 1


@pytest.mark.parametrize("more", [{}, {"cleaned": "nothing of the job is left"}, {"broken": "it is hot"}])
@pytest.mark.parametrize(("document", "code"), [("", "no-identity"), ("another", "wrong-machine")])
def test_a_token_that_a_job_gave_away_lets_no_other_machine_in(
    twin: Twin, ada: User, hand: Knowing, more: dict[str, str], document: str, code: str
) -> None:
    """SEC-2: neither to the next job, nor to say that the machine is clean, or broken."""
    job, worker = started(twin, ada, "warm")
    hello(twin, worker, worker.id)
    finish(twin, job)
    submit(twin, ada, target="warm")
    twin.run()
    before = worker_of(twin, job)
    ask = returning(worker, document, **more)
    with pytest.raises(Refused) as error:
        agents.hello(twin.on, ask if document else replace(ask, signature=""))
    assert (error.value.status, error.value.code) == (401, code)
    after = worker_of(twin, job)
    assert (after.state, after.cleaning, after.session) == (before.state, before.cleaning, before.session)


def test_who_returns_with_another_token_is_not_even_asked_for_papers(twin: Twin, ada: User, hand: Knowing) -> None:
    job, worker = started(twin, ada, "warm")
    hello(twin, worker, worker.id)
    finish(twin, job)
    asked = len(hand.asked)
    with pytest.raises((Refused, LeaseGone)):
        agents.hello(twin.on, replace(returning(worker, worker.id), previous="x" * 43))
    assert len(hand.asked) == asked


def test_a_worker_that_never_was_is_not_asked_for_papers(twin: Twin, ada: User, hand: Knowing) -> None:
    _, worker = started(twin, ada, "warm")
    with pytest.raises((Refused, LeaseGone)):
        agents.hello(twin.on, replace(returning(worker, worker.id), worker="w-01KDVDNA00CSJ6AS9M6CR68D1G"))
    assert hand.asked == []


def test_where_no_factory_asks_for_papers_a_return_costs_no_read_more(
    twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply.apply(twin.on, "admin", SITE.replace('identity = "papers"', ""), "site.toml")
    job, worker = started(twin, ada, "warm")
    hello(twin, worker, "")
    finish(twin, job)
    twin.run()
    monkeypatch.setattr(agents, "check_identity", lambda *_: pytest.fail("nobody asks"))
    assert agents.hello(twin.on, returning(worker, "", cleaned="nothing of the job is left"))


def test_a_factory_without_the_identity_setting_is_not_called(twin: Twin, ada: User, hand: Knowing) -> None:
    job, worker = started(twin, ada, "other")
    assert hello(twin, worker, "").job == job
    assert hand.asked == []


def test_a_driver_that_cannot_tell_is_not_asked(twin: Twin, ada: User) -> None:
    twin.drivers.hand = ScriptedDriver()
    job, worker = started(twin, ada)
    assert hello(twin, worker, "").job == job


def test_a_factory_that_is_no_more_is_not_asked(twin: Twin, ada: User, hand: Knowing) -> None:
    job, worker = started(twin, ada)
    apply.apply(twin.on, "admin", SITE.replace("strict", "new"), "site.toml")
    assert hello(twin, worker, "").job == job
    assert hand.asked == []


def test_a_driver_that_cannot_be_loaded_lets_nobody_in(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    _, worker = started(twin, ada)

    def broken(*given: object) -> ScriptedDriver:
        raise Misconfigured("no such driver")

    monkeypatch.setattr(twin.drivers, "factory", broken)
    assert refused(twin, worker, worker.id) == (429, "not-yet")


def test_a_machine_that_was_made_ahead_of_need_shows_which_it_is_too(twin: Twin) -> None:
    """SEC-2: before it has any job."""
    put(twin, pool_row(twin, "target/default"), warm=Warm(least=1))
    prewarm.fill(twin.on, "target/default")
    twin.run()
    (worker,) = all_units(twin)
    assert refused(twin, worker, "another") == (401, "wrong-machine")
    assert hello(twin, worker, worker.id).idle
