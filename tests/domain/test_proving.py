"""What the rows of a job that tests a factory say about each check."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.domain.jobs.jobs import Job, Proves, Report, Result, State, Times
from penstock.domain.probes import factory_test
from penstock.domain.probes.factory_test import Check, Facts
from penstock.domain.units.units import MAX_SEARCHES, CleanProof, Hold, Search, Unit, UnitState, Visibility
from tests.domain.helpers import MINUTE, NOW, SECOND, job, unit

TIMES = Times(submitted=NOW, ready=NOW, started=NOW + 30 * SECOND, settled=NOW + MINUTE)
FINE = Report(Result.SUCCEEDED, "the script ended", NOW + 32 * SECOND, 0)
SAID = ["penstock test: job J1 on worker w-1", factory_test.AS_DOCUMENTED]
PROOF = CleanProof(by="ec2", time=NOW + MINUTE + 9 * SECOND, checked="the instance is terminated")


def settled(**changes: object) -> Job:
    return job(**{"proves": Proves("f"), "state": State.SETTLED, "times": TIMES, "report": FINE, **changes})


def never_ran(**changes: object) -> Job:
    return settled(**{"times": replace(TIMES, started=None), "report": None, "reason": "it is lost", **changes})


def destroyed(**changes: object) -> Unit:
    seen = Visibility(Search(NOW + 2 * SECOND), Search(NOW + MINUTE + 20 * SECOND, tries=2))
    fields = {
        "state": UnitState.GONE, "born": NOW, "made": NOW + SECOND, "agent": "1.2", "proof": PROOF, "seen": seen,
        "since": PROOF.time,
    }  # fmt: skip
    return unit(**{**fields, **changes})


GOOD = Facts(settled(), destroyed(), (), SAID, (), factory_test.digest("J1"), "1.2")


def one(name: str, facts: Facts) -> Check:
    (found,) = [check for check in factory_test.checks(facts) if check.check == name]
    return found


def test_all_is_well_and_it_is_told_how_long_each_took() -> None:
    found = factory_test.checks(GOOD)
    assert all(check.ok for check in found)
    assert {check.check: check.seconds for check in found} == {
        "settings": None,
        "ordered": 1,
        "listed with its tags": 1,
        "agent said hello": 30,
        "agent version": None,
        "job ran": 2,
        "log came through": None,
        "environment": None,
        "output came back": None,
        "destroyed": 9,
        "not listed any more": 11,
    }
    assert one("ordered", GOOD).detail == "worker w-1"
    assert one("destroyed", GOOD).detail == "ec2: the instance is terminated"
    assert (one("listed with its tags", GOOD).detail, one("not listed any more", GOOD).detail) == (
        "at once",
        "after 2 times without",
    )


def test_at_first_only_the_settings_are_known() -> None:
    found = factory_test.checks(Facts(job(proves=Proves("f")), waits="the job waits for target/u"))
    assert [check.ok for check in found] == [True, *[None] * 10]
    assert found[1].detail == "the job waits for target/u"


@pytest.mark.parametrize("state", [UnitState.CREATING, UnitState.DIRTY])
def test_while_it_is_made_the_reason_that_it_is_not_is_told(state: UnitState) -> None:
    facts = Facts(job(), destroyed(state=state, made=None, proof=None, reason="NoCapacity: none"), waits="it waits")
    assert one("ordered", facts) == Check("ordered", None, "NoCapacity: none")
    assert [check.ok for check in factory_test.checks(facts)] == [True, *[None] * 10]


def test_a_clock_that_goes_back_makes_no_time_negative() -> None:
    assert one("ordered", replace(GOOD, unit=destroyed(made=NOW - SECOND))).seconds == 0


def test_settings_that_the_driver_does_not_take() -> None:
    assert one("settings", replace(GOOD, complaints=["no key 'x'", "no image"])) == Check(
        "settings", False, "no key 'x'; no image"
    )


@pytest.mark.parametrize("of", [None, destroyed(made=None)])
def test_a_machine_that_could_not_be_ordered_is_why_nothing_else_was_reached(of: Unit | None) -> None:
    facts = Facts(never_ran(reason="no such image"), of)
    assert one("ordered", facts) == Check("ordered", False, "no such image")
    assert one("agent said hello", facts).ok is None
    assert one("job ran", facts).ok is None
    assert one("log came through", facts).ok is None
    assert one("listed with its tags", facts).ok is None
    assert one("destroyed", facts).ok is (of is not None or None)


@pytest.mark.parametrize(
    ("look", "state", "ok", "detail"),
    [
        (Search(), UnitState.CREATING, None, "not listed when looked for 0 times"),
        (Search(tries=1), UnitState.READY, None, "not listed when looked for once"),
        (Search(tries=MAX_SEARCHES), UnitState.READY, False, f"not listed when looked for {MAX_SEARCHES} times"),
        (Search(tries=1), UnitState.DIRTY, False, "not listed when looked for once"),
        (Search(tries=1, why="RateLimited: slow"), UnitState.GONE, False, "RateLimited: slow"),
        (Search(found=NOW + SECOND, tries=1), UnitState.READY, True, "after once without"),
    ],
)
def test_a_machine_that_is_not_listed(look: Search, state: UnitState, ok: bool | None, detail: str) -> None:
    found = one("listed with its tags", replace(GOOD, unit=destroyed(state=state, seen=Visibility(there=look))))
    assert (found.ok, found.detail) == (ok, detail)


def test_what_a_machine_said_that_never_said_hello_is_told() -> None:
    lines = [f"console {number}" for number in range(30)]
    facts = replace(GOOD, job=never_ran(), evidence=lines)
    assert one("agent said hello", facts) == Check(
        "agent said hello", False, "\n".join(["it is lost", *lines[-factory_test.EVIDENCE :]])
    )
    assert one("agent version", facts).ok is None
    assert one("agent said hello", replace(facts, job=job())).ok is None


@pytest.mark.parametrize(("agent", "says"), [("1.1", "1.1"), ("", "none")])
def test_an_agent_of_another_version(agent: str, says: str) -> None:
    found = one("agent version", replace(GOOD, unit=destroyed(agent=agent)))
    assert (found.ok, found.detail) == (False, f"it says {says}; the service has 1.2")


@pytest.mark.parametrize(
    "report",
    [
        Report(Result.FAILED, "it exited with code 3", NOW, 3),
        Report(Result.FAILED, "it exited with code 3", NOW, 0),
        Report(Result.SUCCEEDED, "it exited with code 3", NOW, 3),
    ],
)
def test_a_script_that_does_not_end_well(report: Report) -> None:
    found = one("job ran", replace(GOOD, job=settled(report=report)))
    assert (found.ok, found.detail) == (False, "it exited with code 3")


def test_a_machine_that_was_lost_while_it_ran() -> None:
    facts = replace(GOOD, job=settled(report=None, reason="lost"), said=[], output=None)
    assert one("job ran", facts) == Check("job ran", False, "lost")
    assert one("log came through", facts).detail == "the first line of its script is not in its log of 0 lines"
    assert one("environment", facts).detail == "the script did not come to say so"
    assert one("output came back", facts).detail == "there is no /work/penstock-test.txt"
    names = ("log came through", "environment", "output came back")
    assert [one(name, facts).ok for name in names] == [False] * 3
    running = replace(facts, job=settled(report=None, state=State.RUNNING))
    assert [one(name, running).ok for name in (*names, "job ran")] == [None] * 4


def test_wrong_bytes_and_a_wrong_environment_are_told() -> None:
    facts = replace(GOOD, output="abc", said=[SAID[0], "penstock test: wrong: TZ is ''", "penstock test: wrong: CI"])
    assert one("environment", facts) == Check("environment", False, "TZ is ''; CI")
    assert one("output came back", facts) == Check("output came back", False, "its SHA-256 is abc")
    assert one("log came through", facts).ok


def test_a_line_of_another_worker_is_not_its_own() -> None:
    assert one("log came through", replace(GOOD, said=["penstock test: job J1 on worker w-2"])).ok is False


def test_what_is_not_destroyed_yet_says_why() -> None:
    dirty = destroyed(state=UnitState.DIRTY, proof=None, reason="its lease ended")
    assert one("destroyed", replace(GOOD, unit=dirty)) == Check("destroyed", None, "its lease ended")
    assert one("destroyed", replace(GOOD, unit=dirty, job=job())).detail == ""
    held = replace(dirty, hold=Hold("root", "a look", NOW, NOW + MINUTE))
    assert one("destroyed", replace(GOOD, unit=held)).detail == "held until 2026-01-02 03:05:05Z"
    assert one("destroyed", replace(GOOD, unit=held, job=job())).detail == ""
    assert one("destroyed", replace(GOOD, unit=destroyed(proof=None))).ok is None


@pytest.mark.parametrize(
    ("look", "ok", "detail"),
    [
        (Search(tries=1), None, "still listed once"),
        (Search(tries=MAX_SEARCHES), False, f"still listed {MAX_SEARCHES} times"),
        (Search(tries=MAX_SEARCHES, why="Unknown: down"), False, "Unknown: down"),
    ],
)
def test_what_is_still_listed_after_it_was_destroyed(look: Search, ok: bool | None, detail: str) -> None:
    found = one("not listed any more", replace(GOOD, unit=destroyed(seen=Visibility(gone=look))))
    assert (found.ok, found.detail) == (ok, detail)


def test_only_an_expected_unit_can_be_listed_or_missing() -> None:
    facts = replace(GOOD, unit=destroyed(seen=None))
    assert one("listed with its tags", facts).ok is one("not listed any more", facts).ok is None
    assert one("not listed any more", replace(GOOD, unit=destroyed(state=UnitState.DIRTY))).ok is None


def test_the_worker_of_such_a_job_is_looked_for_and_may_be_held() -> None:
    plain = unit()
    assert factory_test.ordered(plain, Proves("f"), "ada", NOW) == replace(plain, seen=Visibility())
    held = factory_test.ordered(plain, Proves("f", keep=60), "ada", NOW)
    assert held.hold == Hold("ada", "a test of factory f: to look at it if that fails", NOW, NOW + MINUTE)
    assert held.journal.entries[-1].what == str(held.hold)
    assert held.seen == Visibility()


def run_script(tmp_path: Path, **changes: str) -> list[str]:
    """What the script says in an environment as agents make it, with some of it changed."""
    (tmp_path / "bmat").write_text("#!/bin/sh\necho here\n")
    (tmp_path / "bmat").chmod(0o700)
    tools = Path(str(shutil.which("sh"))).parent
    environment = {
        "PATH": f"{tmp_path}:{tools}:/usr/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "CI": "true",
        "TZ": "UTC", "PENSTOCK_JOB_ID": "J1", "BUILDOMAT_JOB_ID": "J1", "PENSTOCK_WORKER_ID": "w-1",
        "PENSTOCK_ATTEMPT": "1", "PENSTOCK_TARGET": "linux", "PENSTOCK_DEADLINE": "soon",
        "PENSTOCK_ROOT": str(tmp_path), "PENSTOCK_WORK": str(tmp_path), "PENSTOCK_INPUT": str(tmp_path),
        "TEST_TARGET": "linux", "TEST_FACTORY": "here",
    }  # fmt: skip
    done = subprocess.run(
        ["sh", "-c", factory_test.SCRIPT], env=environment | changes, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_the_script_says_and_writes_what_is_looked_for(tmp_path: Path) -> None:
    assert run_script(tmp_path) == SAID
    assert hashlib.sha256((tmp_path / "penstock-test.txt").read_bytes()).hexdigest() == factory_test.digest("J1")


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("PENSTOCK_TARGET", "mac", "PENSTOCK_TARGET is 'mac', not 'linux'"),
        ("PENSTOCK_ATTEMPT", "2", "PENSTOCK_ATTEMPT is '2', not '1'"),
        ("BUILDOMAT_JOB_ID", "", "BUILDOMAT_JOB_ID is '', not 'J1'"),
        ("CI", "", "CI is '', not 'true'"),
        ("TZ", "CET", "TZ is 'CET', not 'UTC'"),
        ("TEST_FACTORY", "there", "what `bmat factory name` says is 'here', not 'there'"),
        ("PENSTOCK_DEADLINE", "", "PENSTOCK_DEADLINE is not set"),
        ("PENSTOCK_INPUT", "/nowhere", "PENSTOCK_INPUT=/nowhere is no folder"),
        ("HOME", "", "HOME= is no folder"),
    ],
)
def test_the_script_says_what_is_not_as_documented(tmp_path: Path, name: str, value: str, wrong: str) -> None:
    assert run_script(tmp_path, **{name: value}) == [SAID[0], f"penstock test: wrong: {wrong}"]
