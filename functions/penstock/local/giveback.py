"""Gives back and cleans what jobs hold in a local cloud, before its data goes: nobody could do it afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from penstock.local.state import LocalCloudError, Running

SECONDS = 90.0
"""How long it may take. An idle cloud takes no time at all."""

PAUSE = 0.25
"""Seconds between two looks."""

LIVE = ("creating", "ready")
"""The states of what a job has, or is about to have."""

REASON = "the local cloud goes down"

Call = Callable[..., Any]


@dataclass(frozen=True)
class Kept:
    """A worker or a resource that is not gone."""

    sort: str
    id: str
    job: str | None
    state: str
    what: str
    is_held: bool

    def __str__(self) -> str:
        held = ", held by an operator" if self.is_held else ""
        return f"{self.sort} {self.id} of {self.what}: {self.state}{held}"


def give_back(call: Call, running: Running, report: Callable[[str], None], seconds: float = SECONDS) -> list[Kept]:
    """Pause all pools, end the jobs that hold something, and wait until everything is destroyed. What is left then.

    What operators hold, and what is in quarantine, is not waited for. Raises LocalCloudError if the cloud refuses, or
    does not answer.
    """
    try:
        return _give_back(call, running, report, seconds)
    except httpx.HTTPError as error:
        raise LocalCloudError(f"the local cloud at {running.url} does not answer: {error}") from error


def _give_back(call: Call, running: Running, report: Callable[[str], None], seconds: float) -> list[Kept]:
    left = list(kept(call, running))
    if not left:
        return []
    for pool in call(running, "GET", "/v1/pools")["items"]:
        call(running, "POST", f"/v1/pools/{pool['pool']}/pause")
    told: set[str] = set()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        left = list(kept(call, running))
        waiting = [each for each in left if not each.is_held and each.state != "quarantined"]
        if not waiting:
            break
        for each in waiting:
            _end(call, running, each, told, report)
        time.sleep(PAUSE)
    return left


def _end(call: Call, running: Running, unit: Kept, told: set[str], report: Callable[[str], None]) -> None:
    """Cancel the job that has it, or have it destroyed if nobody does; each once. What is on its way is left to go."""
    if unit.state not in LIVE and unit.state != "idle":
        return
    if unit.state == "idle" or not unit.job:
        path, name = f"/v1/{unit.sort}s/{unit.id}/recycle", unit.id
        body: Any = {"reason": REASON}
    else:
        path, name, body = f"/v1/jobs/{unit.job}/cancel", unit.job, {}
    if name in told:
        return
    told.add(name)
    report(f"ending job {name}" if name == unit.job else f"giving back {unit.sort} {unit.id}")
    try:
        call(running, "POST", path, body)
    except LocalCloudError:  # it has just ended by itself, or is on its way
        return


def kept(call: Call, running: Running) -> Iterator[Kept]:
    """All workers and resources that are not gone."""
    for sort, of in (("resource", "type"), ("worker", "target")):
        page = ""
        while True:
            found = call(running, "GET", f"/v1/{sort}s" + (f"?page={page}" if page else ""))
            for each in found["items"]:
                if each["state"] != "gone":
                    yield Kept(sort, each["id"], each["job"], each["state"], each[of], each["hold"] is not None)
            page = found["next"]
            if not page:
                break


def contents(call: Call, running: Running) -> list[str]:
    """What is in a local cloud, for who is about to end it: jobs, how many hold something, and users."""
    users = call(running, "GET", "/v1/users")["items"]
    jobs = [len(call(running, "GET", f"/v1/jobs?owner={user['name']}&limit=100")["items"]) for user in users]
    holding = {each.job for each in kept(call, running) if each.job and each.state in LIVE}
    many = f"{sum(jobs)} or more jobs" if 100 in jobs else _many(sum(jobs), "job")
    lines = [f"{many} with logs and files, {_many(len(users), 'user')}, all tokens, the site's configuration"]
    if holding:
        lines.append(f"{_many(len(holding), 'job')} under way, to be cancelled now")
    return lines


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
