"""A machine that is made ahead of need boots, or does not: it is measured, and an operator is told. [SEC-1]"""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.domain import metrics
from penstock.domain.units.units import JOURNAL_CHARS, UnitState
from penstock.domain.users.users import User
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.testing.metrics import RecordedMetrics
from penstock.testing.twin import Twin
from penstock.usecases import cooldowns
from penstock.usecases.site import apply
from penstock.usecases.units import driver_calls, drivers, prewarm, reconcile
from tests.usecases.prewarmed import NONE, SITE, a_twin, at_rest, existing, only, pool_of
from tests.usecases.steps import submit, sweep, worker_of
from tests.usecases.talkative import Talkative
from tests.usecases.warm import Agent, unit_of


@pytest.fixture
def twin() -> Twin:
    return a_twin()


def outcomes(told: RecordedMetrics) -> dict[str, float]:
    names = ("success", "failed", "disappeared", "aborted")
    found = {name: sum(told.of(metrics.BOOT_OUTCOMES, target="linux", outcome=name)) for name in names}
    return {name: count for name, count in found.items() if count}


def booted(told: RecordedMetrics) -> list[int]:
    return [round(value) for value in told.of(metrics.BOOTED_AFTER, target="linux")]


def test_its_boot_is_measured_when_it_comes_and_not_when_it_gets_its_first_job(twin: Twin, ada: User) -> None:
    twin.pass_time(40)
    agent = at_rest(twin)
    assert (booted(twin.metrics), outcomes(twin.metrics)) == ([40], {"success": 1})
    agent.hello()
    twin.pass_time(50)
    agent.hello()
    submit(twin, ada, target="linux")
    twin.run()
    assert "job" in str(agent.hello())
    assert unit_of(twin, agent.worker).state is UnitState.READY
    assert (booted(twin.metrics), outcomes(twin.metrics)) == ([40], {"success": 1}), "it was idle for the rest"
    assert len(twin.metrics.of(metrics.STARTED_AFTER)) == 1


def test_a_worker_that_is_granted_while_it_boots_is_measured_by_its_hello(twin: Twin, ada: User) -> None:
    twin.pass_time(30)
    job = submit(twin, ada, target="linux")
    twin.run()
    twin.pass_time(20)
    agent = Agent(twin, worker_of(twin, job).id)
    agent.hello()
    agent.hello()
    assert (booted(twin.metrics), outcomes(twin.metrics)) == ([50], {"success": 1})


def test_what_it_waited_for_before_it_was_launched_is_no_boot(ada: User) -> None:
    twin = a_twin(NONE)
    twin.drivers.hand.says = [Misconfigured("no such image")] * 2
    job = submit(twin, ada, target="linux")
    for _ in range(60):
        twin.pass_time(10)
        twin.run()
    assert worker_of(twin, job).creation.made
    made = worker_of(twin, job).creation.made
    twin.pass_time(15)
    Agent(twin, worker_of(twin, job).id).hello()
    assert made
    assert booted(twin.metrics) == [round((twin.world.now() - made).total_seconds())]


def missed(twin: Twin) -> str:
    """The worker that did not boot."""
    worker = only(twin).id
    sweep(twin, 601)
    assert unit_of(twin, worker).state is UnitState.GONE
    return worker


def said_of(twin: Twin, worker: str) -> str:
    return "\n".join(entry.what for entry in unit_of(twin, worker).journal.entries)


def test_that_it_did_not_boot_is_with_its_factory_and_in_its_own_journal() -> None:
    twin = Twin()
    hand = twin.drivers.hand = Talkative("i-1 is running; end of its console:\nkernel panic")
    apply.apply(twin.on, "admin", SITE, "site.toml")
    twin.run()
    worker = missed(twin)
    (failure,) = cooldowns.failures(twin.on, "factory/hand")
    assert (failure.code, failure.count) == (f"Unknown:{prewarm.NO_HELLO_CODE}", 1)
    for told in (failure.message, said_of(twin, worker)):
        assert f"worker {worker}: {prewarm.NO_HELLO}: i-1 is running; end of its console:\nkernel panic" in told
    assert hand.asked == 1
    assert outcomes(twin.metrics) == {"failed": 1}
    assert pool_of(twin).setback


def test_its_key_is_not_told() -> None:
    twin = Twin()
    hand = twin.drivers.hand = Talkative("")
    apply.apply(twin.on, "admin", SITE, "site.toml")
    twin.run()
    hand.tells = f"config: {drivers.bootstrap_key(twin.on.signing_key(), only(twin).id)}!"
    worker = missed(twin)
    assert "config: (its key)!" in said_of(twin, worker)
    assert "config: (its key)!" in cooldowns.failures(twin.on, "factory/hand")[0].message


def test_without_evidence_the_failure_is_a_boot_that_failed(twin: Twin) -> None:
    worker = missed(twin)
    (failure,) = cooldowns.failures(twin.on, "factory/hand")
    assert failure.message == f"worker {worker}: {prewarm.NO_HELLO}"


def test_long_evidence_keeps_its_beginning_and_end() -> None:
    told = "i-1 is running" + "." * 5000 + "kernel panic"
    kept = driver_calls.shorten(told)
    assert len(kept) == JOURNAL_CHARS
    assert (kept.startswith("i-1 is running"), kept.endswith("kernel panic")) == (True, True)
    assert driver_calls.shorten("x" * JOURNAL_CHARS) == "x" * JOURNAL_CHARS


def test_a_worker_that_still_may_come_has_missed_nothing(twin: Twin) -> None:
    """The message that asks for its next step comes again while it boots."""
    unit = only(twin)
    twin.pass_time(590)
    twin.take("factory", {"unit": unit.id})
    assert only(twin) == unit
    assert Agent(twin, unit.id).hello().idle
    assert outcomes(twin.metrics) == {"success": 1}


def test_a_worker_that_comes_at_the_last_moment_has_missed_nothing(twin: Twin) -> None:
    """It says hello while its driver is asked what became of it."""
    worker = only(twin).id
    hand = twin.drivers.hand = Talkative("still booting")
    evidence_of = hand.evidence

    def comes(unit: str) -> str | None:
        assert Agent(twin, unit).hello().idle
        return evidence_of(unit)

    hand.evidence = comes  # type: ignore[method-assign]
    twin.pass_time(601)
    twin.take("factory", {"unit": worker})
    assert unit_of(twin, worker).state is UnitState.IDLE
    assert cooldowns.failures(twin.on, "factory/hand") == []
    assert (outcomes(twin.metrics), pool_of(twin).setback) == ({"success": 1}, None)


def test_what_becomes_of_others_that_never_came_is_counted_too(twin: Twin) -> None:
    assert reconcile.end_vanished(twin.on, only(twin), timedelta(seconds=60), twin.world.now())
    assert outcomes(twin.metrics) == {"disappeared": 1}
    never = Twin()
    never.drivers.hand.says = [Unsatisfiable("no such image")]
    apply.apply(never.on, "admin", SITE, "site.toml")
    never.run()
    assert outcomes(never.metrics) == {"failed": 1}


def test_a_worker_that_came_before_it_made_room_is_counted_once(twin: Twin, ada: User) -> None:
    agent = at_rest(twin)
    for _ in range(2):
        submit(twin, ada, target="other")
    twin.run()
    assert unit_of(twin, agent.worker).state is UnitState.GONE
    assert outcomes(twin.metrics) == {"success": 1}
    assert said_of(twin, agent.worker).endswith(
        f"it made room for others; it is to be destroyed\ndestroyed (hand: {agent.worker})"
    ), "and nothing else is known of it"


def test_a_worker_that_made_room_before_it_came_was_aborted(twin: Twin, ada: User) -> None:
    for _ in range(2):
        submit(twin, ada, target="other")
    twin.run()
    assert not [unit for unit in existing(twin) if unit.type == "linux"]
    assert outcomes(twin.metrics) == {"aborted": 1}
    assert cooldowns.failures(twin.on, "factory/hand") == []
