"""More than a thousand jobs at once on a whole cloud: each has its place, and all settle. [JOB-1] [QUEUE-1]"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import pytest

from penstock.local import cloud
from penstock.local.state import StateFolder
from penstock.testing.site import site_toml
from tests.e2e.conftest import Local, cloud_wait

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.xdist_group("storm")]

JOBS = 1_200
"""More than the 1,000 rows that are read of a queue: positions and counts beyond them are counted."""
LAST = 40
"""How many come one after another, so that their places are known."""
POOL = "target/linux"
SITE = site_toml(
    factories={"here": "process"},
    targets={"linux": {"factory": "here", "limit": 8}, "default": "linux"},
    wells={"locks": "lock"},
    resources={"licence": {"well": "locks", "limit": 8}},
)


@pytest.fixture(scope="module")
def storm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    folder = tmp_path_factory.mktemp("storm")
    (folder / "site.toml").write_text(SITE)
    place = StateFolder(folder / "state")
    running = cloud.up(report=print, config=folder / "site.toml", tied=True, place=place)
    try:
        yield Local(running, folder, place.key(), place)
    finally:
        cloud.down(print, place)


def ask(storm: Local, method: str, path: str, **more: Any) -> dict[str, Any]:
    """The body of an answer, as a client gets it: it repeats a request that is throttled or not answered."""
    for _ in range(20):
        with suppress(httpx.TransportError):
            answer = storm.call(method, path, **more)
            if answer.status_code not in (429, 503):
                assert answer.is_success, answer.text
                return dict(answer.json())
        time.sleep(1)
    raise AssertionError(f"{method} {path} was never answered")


def submit(storm: Local, number: int) -> str:
    """Submit a job; its id."""
    script = f'#!/bin/bash\n#: variety = "basic"\n#: name = "job-{number}"\necho {number}\n'
    headers = {"idempotency-key": f"storm-{number}"}
    return str(ask(storm, "POST", "/v1/jobs", json={"script": script}, headers=headers)["id"])


def waiting(storm: Local) -> int:
    """How many claims wait in the pool, as the API shows it."""
    return int(ask(storm, "GET", f"/v1/pools/{POOL}")["waiting"])


def left(storm: Local) -> int:
    """How many claims wait in the pool, and how many of its slots are held."""
    pool = ask(storm, "GET", f"/v1/pools/{POOL}")
    return int(pool["waiting"]) + int(pool["held"])


def position(storm: Local, job: str) -> int:
    """A job's place in the queue, as `job why` tells it."""
    return int(ask(storm, "GET", f"/v1/jobs/{job}/why")["blocked_on"]["position"])


def settled(storm: Local) -> list[dict[str, Any]]:
    """All settled jobs."""
    found: list[dict[str, Any]] = []
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        page = ask(storm, "GET", "/v1/jobs", params={"state": "settled", "limit": 100, "page": page["next"]})
        found += page["items"]
    return found


def less_than(before: int, storm: Local) -> int:
    """How many are left, as soon as they are less than before. Fails when none ends for minutes."""
    return int(cloud_wait(lambda: (now := left(storm)) < before and [now])[0])


@pytest.mark.timeout(3600)
def test_a_thousand_jobs_and_more_at_once_are_counted_and_settle(storm: Local) -> None:
    assert storm.cli("pool", "pause", POOL).returncode == 0
    with ThreadPoolExecutor(4) as many:
        first = list(many.map(lambda number: submit(storm, number), range(JOBS - LAST)))
    cloud_wait(lambda: waiting(storm) == len(first))
    last = [submit(storm, number) for number in range(len(first), JOBS)]
    cloud_wait(lambda: waiting(storm) == JOBS)
    assert len({*first, *last}) == JOBS
    assert [position(storm, job) for job in last] == list(range(len(first) + 1, JOBS + 1))
    some = [position(storm, job) for job in first[::LAST]]
    assert len(set(some)) == len(some)
    assert set(some) <= set(range(1, len(first) + 1))
    assert storm.cli("pool", "resume", POOL).returncode == 0
    before = JOBS
    while before:
        before = less_than(before, storm)
    assert Counter((each["outcome"], each["attempt"]) for each in settled(storm)) == {("succeeded", 1): JOBS}
    storm.put_back()
    assert waiting(storm) == 0
