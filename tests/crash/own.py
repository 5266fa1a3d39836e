"""Scenarios of what is the site's own, or its operators': canaries, holds, giving back, renewal, privileges,
reviews.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.domain.jobs.jobs import State
from penstock.domain.probes.canaries import Canary
from tests.crash.life import LINES, Life
from tests.crash.scenarios import Steps, scenario
from tests.crash.sitefile import ARCHIVED, CANARY, FEW, IMPATIENT, PRIVATE, REVIEWED


def release_resource(life: Life, unit: str) -> None:
    """Let a resource out of quarantine; that it is out already is fine."""
    life._user("POST", f"/v1/resources/{unit}/release", {}, 200, 409)


def hold_no_more(life: Life, job: str) -> None:
    """Let go what is held for a job's sake; that nothing is held any more is fine."""
    life._user("POST", f"/v1/jobs/{job}/release", {}, 200, 409)


def send_canary(life: Life, pool: str) -> None:
    """Send a canary; that it is on its way already is fine."""
    life._user("POST", f"/v1/canaries/{pool}/send", None, 200, 409)


def user(life: Life, name: str, *privileges: str) -> str:
    """Create a user with privileges, who may exist already; a token of theirs."""
    life._user("POST", "/v1/users", {"name": name, "privileges": []}, 201, 409)
    for each in privileges:
        life._user("PUT", f"/v1/users/{name}/privileges/{each}", None, 200)
    return str(life._user("POST", f"/v1/users/{name}/tokens", {}, 201).body["token"])


def take_from(life: Life, name: str, privilege: str) -> None:
    """Take a privilege from a user, and from what their jobs hold."""
    life._user("DELETE", f"/v1/users/{name}/privileges/{privilege}?now=true", None, 200)


def are_held(life: Life, job: str, count: int) -> Callable[[], bool]:
    """Asks whether so many units are held for a job's sake, now that its script has ended."""
    return lambda: len([unit for unit in life.units() if unit.lease.job == job and unit.hold]) == count


def is_renewed(life: Life, job: str) -> Callable[[], bool]:
    """Asks whether the well of a job's resource was asked anew, or the job is settled."""
    asked = life.site.drivers.hands["well"].asked
    return lambda: life.is_(job)() or any(unit.lease.job == job and asked[unit.id] > 1 for unit in life.units())


def came_back(life: Life, outcome: str) -> Callable[[], bool]:
    """Asks whether a canary came back like this."""

    def is_back() -> bool:
        rows = [row for row in life.rows.get("canary", []) if isinstance(row, Canary)]
        return any(row.outcome == outcome and not row.is_out for row in rows)

    return is_back


@scenario(minutes=5)
def canary(life: Life) -> Steps:
    """A canary fails on what exists already, which is quarantined; that is mended, and the next succeeds."""
    life.failing.add(0)
    life.configure(CANARY)
    yield came_back(life, "failed")
    yield lambda: bool(life.apart())
    for unit in life.apart():
        release_resource(life, unit)
    yield life.empty
    send_canary(life, "resource/bench")
    yield came_back(life, "succeeded")


@scenario()
def hold_on_failure(life: Life) -> Steps:
    """A job fails, and its worker and its resource are held for its user, who lets them go; then another has them."""
    life.failing.add(0)
    job = life.submit(resources=["bench"], hold_on_failure=600)
    yield are_held(life, job, 2)
    second = life.submit(resources=["bench"])
    yield life.waits(second)
    hold_no_more(life, job)
    yield life.is_(second)


@scenario(minutes=2)
def hold_runs_out(life: Life) -> Steps:
    """A job fails, and what is held for its user is put back when that time is over."""
    life.failing.add(0)
    job = life.submit(resources=["bench"], hold_on_failure=120)
    yield are_held(life, job, 2)
    second = life.submit(resources=["bench"])
    yield life.is_(second)


@scenario(minutes=4)
def give_back(life: Life) -> Steps:
    """A job holds one thing and waits too long for another: it gives back what it holds, and somebody else uses it."""
    life.configure(IMPATIENT)
    life.pause("resource/licence", "pause")
    first = life.submit(resources=["bench", "licence"])
    yield life.waits(first)
    second = life.submit(resources=["bench"])
    yield life.is_(second)
    life.pause("resource/licence", "resume")
    yield life.is_(first)


@scenario(minutes=2)
def renew(life: Life) -> Steps:
    """What a well told of a resource is about to end, and it is asked anew while the job runs."""
    life.site.drivers.hands["well"].lasting = 240
    job = life.submit_held("job", resources=["bench"])
    yield life.is_(job, State.RUNNING)
    yield is_renewed(life, job)
    life.let_go(job)
    yield life.is_(job)


@scenario(minutes=1)
def revoke(life: Life) -> Steps:
    """A privilege is taken from a user one of whose jobs holds something under it, and another waits for it."""
    life.configure(PRIVATE)
    ada = user(life, "ada", "resource.bench")
    first = life.submit_held("first", by=ada, resources=["bench"])
    yield life.is_(first, State.RUNNING)
    second = life.submit(by=ada, resources=["bench"])
    yield life.waits(second)
    take_from(life, "ada", "resource.bench")
    yield life.is_(first)
    yield life.is_(second)


ASKS = """#!/bin/sh
#: name = "deploy"
#: variety = "basic"
#: environment = "production"
#: resources = ["bench"]
true
"""


def decide(life: Life, by: str, job: str, *, refuse: bool) -> None:
    """Approve or refuse a job, by a token; that it is over already is fine."""
    life._user("POST", f"/v1/jobs/{job}/review", {"refuse": refuse}, 200, 409, by=by)


@scenario()
def review(life: Life) -> Steps:
    """Two jobs ask for an environment: one is approved, and gets what needs a privilege; the other is refused."""
    life.configure(REVIEWED)
    cy, bert = user(life, "cy"), user(life, "bert")
    first, second = life.submit(by=cy, script=ASKS), life.submit(by=cy, script=ASKS)
    yield life.is_(first, State.WAITING)
    yield life.is_(second, State.WAITING)
    decide(life, bert, first, refuse=False)
    decide(life, bert, second, refuse=True)
    yield life.is_(first)
    yield life.is_(second)


@scenario()
def backlog(life: Life) -> Steps:
    """One job of an owner is under way at once: one of those that wait is cancelled, the others run one by one."""
    life.configure(FEW)
    first = life.submit_held("first")
    yield life.is_(first, State.RUNNING)
    second, third = life.submit(), life.submit()
    yield life.is_(third, State.WAITING)
    life.cancel(second)
    yield life.is_(second)
    life.let_go(first)
    yield life.is_(first)
    yield life.is_(third)


def is_archived(life: Life, job: str) -> Callable[[], bool]:
    """Asks whether a job's log is an object, and no row of it is left."""
    return lambda: (
        any(row.job == job and row.state == "archived" and not row.due for row in life.rows.get("archive", []))  # type: ignore[attr-defined]
        and not any(row.job == job for row in life.rows.get("batch", []))  # type: ignore[attr-defined]
    )


def read_whole(life: Life, job: str) -> None:
    """Read a log, which has no gap, and each line of its script once."""
    reply = life._user("GET", f"/v1/jobs/{job}/events", None, 200)
    items = reply.body["items"]
    assert [each["seq"] for each in items] == list(range(1, len(items) + 1))
    assert tuple(each["payload"] for each in items if each["stream"] == "stdout") == LINES


@scenario(minutes=1)
def archive(life: Life) -> Steps:
    """A job's log becomes an object, which is read as its rows were."""
    life.configure(ARCHIVED)
    job = life.submit()
    yield life.is_(job)
    yield is_archived(life, job)
    read_whole(life, job)
