"""Canaries: when they are sent, how they come back, and what they fail on."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from penstock.domain.jobs.jobs import Job, Outcome, Report, Result, State
from penstock.domain.probes import canaries
from penstock.domain.probes.canaries import RECHECK_INTERVAL, Canary
from penstock.domain.site.parse import parse
from penstock.kernel.rows import Place
from tests.domain.helpers import MINUTE, NOW, job, unit

CANARY = Canary(pool="target/ubuntu", due=NOW)
EVERY = timedelta(hours=1)


def settled(outcome: Outcome) -> Job:
    return job(state=State.SETTLED, outcome=outcome, reason="so it ended")


def test_a_canary_is_known_by_its_pool_and_due_when_there_is_something_to_do() -> None:
    assert (CANARY.key.pk, CANARY.deadline) == ("canary#target/ubuntu", NOW)
    assert CANARY.place == Place("canaries", "target/ubuntu")


def test_a_canary_that_is_out_is_looked_after() -> None:
    out = canaries.submitted(CANARY, "J1", NOW)
    assert (out.job, out.since, out.is_out, out.due) == ("J1", NOW, True, NOW + RECHECK_INTERVAL)
    assert canaries.recheck(out, NOW + MINUTE) == replace(out, due=NOW + MINUTE + RECHECK_INTERVAL)


@pytest.mark.parametrize(
    ("outcome", "failures"),
    [(Outcome.SUCCEEDED, 0), (Outcome.FAILED, 3), (Outcome.ERRORED, 2), (Outcome.CANCELLED, 2)],
)
def test_a_canary_that_is_back_has_told_something_or_nothing(outcome: Outcome, failures: int) -> None:
    out = replace(canaries.submitted(CANARY, "J1", NOW), failures=2)
    back = canaries.settled(out, settled(outcome), EVERY, NOW + MINUTE)
    assert (back.is_out, back.outcome, back.reason, back.failures) == (False, str(outcome), "so it ended", failures)
    assert back.due == NOW + EVERY


def test_a_canary_that_was_out_for_long_is_followed_at_once() -> None:
    late = NOW + 3 * EVERY
    assert canaries.settled(canaries.submitted(CANARY, "J1", NOW), settled(Outcome.SUCCEEDED), EVERY, late).due == late
    assert canaries.settled(CANARY, job(), EVERY, NOW).due == NOW + EVERY
    assert canaries.settled(replace(CANARY, failures=1), job(), EVERY, NOW).failures == 1


def test_a_canary_that_was_refused_is_tried_again() -> None:
    told = canaries.refused(replace(CANARY, failures=2), "no such target", EVERY, NOW)
    assert (told.outcome, told.reason, told.failures, told.due) == ("refused", "no such target", 2, NOW + EVERY)
    assert (told.is_out, told.since) == (False, NOW)


@pytest.mark.parametrize(
    ("outcome", "failures", "is_failing"),
    [
        (None, 0, False), ("succeeded", 0, False), ("failed", 1, True), ("errored", 0, True), ("refused", 0, True),
        ("cancelled", 0, False), ("cancelled", 1, True),
    ],
)  # fmt: skip
def test_a_canary_is_failing_until_it_succeeds(outcome: str | None, failures: int, is_failing: bool) -> None:
    told = replace(CANARY, outcome=outcome, failures=failures)
    assert canaries.is_failing(told) is canaries.is_failing(canaries.submitted(told, "J2", NOW)) is is_failing


def reported(result: Result, canary: str = "target/ubuntu") -> Job:
    return job(canary=canary, report=Report(result, "exit 1", NOW))


@pytest.mark.parametrize("result", [Result.FAILED, Result.TIMED_OUT])
def test_what_it_fails_on_is_broken(result: Result) -> None:
    had = [unit(), unit(id="r-1", pool="resource/bench"), unit(id="w-2", broken="it was before")]
    ((was, after),) = canaries.mark_broken(reported(result), had, NOW)
    assert (was, after.health.broken) == (unit(), "canary job J1 failed on it: exit 1")


@pytest.mark.parametrize(
    "of",
    [reported(Result.SUCCEEDED), reported(Result.CANCELLED), reported(Result.LOST), reported(Result.FAILED, ""), job()],
)
def test_nothing_else_is(of: Job) -> None:
    assert canaries.mark_broken(of, [unit(), unit(pool="")], NOW) == []


SITE = """
[factories.f]
driver = "process"
[wells.w]
driver = "lock"
[targets.t]
factory = "f"
{target}
[resources.r]
well = "w"
{resource}
"""


def test_a_site_says_what_is_run_and_how_often() -> None:
    text = SITE.format(
        target='canary = { every = "1h", script = "df -h" }',
        resource='canary = { every = "90s", script = "#!/bin/sh\\ntrue", target = "t", timeout = "1m" }',
    )
    site = parse(text, "site.toml")
    assert not isinstance(site, tuple)
    (target, of_target), (kind, of_kind) = site.canaries().values()
    assert (target.pool, of_target.every, of_target.script) == ("target/t", 3600, "#!/bin/bash\ndf -h")
    assert (of_target.timeout, of_target.target) == (300, None)
    assert (kind.pool, of_kind.every, of_kind.script) == ("resource/r", 90, "#!/bin/sh\ntrue")
    assert (of_kind.timeout, of_kind.target) == (60, "t")


@pytest.mark.parametrize(
    ("target", "resource", "message"),
    [
        ('canary = { every = "1h" }', "", "`script`"),
        ('canary = { script = "true" }', "", "`every`"),
        ('canary = { every = "59s", script = "true" }', "", "at least 60 seconds"),
        ('canary = { every = "31d", script = "true" }', "", "30 days"),
        ('canary = { every = "1h", script = "" }', "", "is empty"),
        ('canary = { every = "1h", script = "#!/bin/sh\\n#: name = 3" }', "", "is not a job file that can run"),
        ('canary = { every = "1h", script = "true", target = "t" }', "", "unknown key `target`"),
        ("", 'canary = { every = "1h", script = "true" }', "`target`"),
        ("", 'canary = { every = "1h", script = "true", target = "u" }', "there is no target `u`"),
    ],
)
def test_what_cannot_be_is_said(target: str, resource: str, message: str) -> None:
    found = parse(SITE.format(target=target, resource=resource), "site.toml")
    assert isinstance(found, tuple)
    assert any(message in fault.message for fault in found), found


def test_a_redirect_has_none_of_its_own() -> None:
    found = parse('[targets.a]\nredirect = "a"\ncanary = { every = "1h", script = "true" }', "site.toml")
    assert isinstance(found, tuple)
    assert any("a redirect has no `canary` of its own" in fault.message for fault in found)
