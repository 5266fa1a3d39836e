"""A job on EC2, whole and on the wire, in an account with more machines than EC2 lists at a time. [UNIT-1] [JOB-1]

Submit, RunInstances, a real agent from the machine's own user data, TerminateInstances; then the sweep compares all
pages with the rows: what nobody knows is destroyed, what is gone is noticed, and nothing else is touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.units.units import Cleaning, Creation, Unit, UnitKind, UnitLease, UnitState
from penstock.drivers.factories.ec2 import machines
from penstock.drivers.factories.ec2.factory import RECHECK_SECONDS
from penstock.drivers.factories.ec2.machines import PAGE
from penstock.kernel import rows
from penstock.kernel.rows import Create
from penstock.testing.site import site_toml
from tests.crash.site import REGION
from tests.ec2.account import Account, account
from tests.ec2.events import ends

MACHINES = int(os.environ.get("MACHINES", "110"))
"""How many there are besides, on pages of a hundred. `make prove` has thousands, on pages as long as EC2's own."""

WEEK = timedelta(days=7)
IMAGE = "ami-12c6146b"
"""One that moto brings."""

CONFIG = site_toml(
    factories={"aws": {"driver": "ec2", "region": "us-east-1", "image": "ami-12c6146b", "types": ["m7g.large"]}},
    targets={"default": {"factory": "aws"}},
    limits={"lease": "1h"},
)


@pytest.fixture
def aws() -> Iterator[Account]:
    with pytest.MonkeyPatch.context() as patch, account(patch) as made:
        made.ask("PUT", "/v1/config", {"toml": CONFIG})
        made.rest()
        yield made


def idle(aws: Account, name: str, due: timedelta) -> Unit:
    """The row of an idle worker that may stay for as long as it likes, and is to be heard of by then."""
    now = aws.site.world.now()
    return Unit(
        id=name,
        is_a=UnitKind.WORKER,
        maker="aws",
        type="crowd",
        state=UnitState.IDLE,
        lease=UnitLease(job=rows.ulid(now, bytes(10)), attempt=1, order=0, pool="target/crowd", slot=name, fence=1),
        since=now,
        creation=Creation(made=now),
        due=now + due,
        cleaning=Cleaning(until=now + WEEK),
    )


def crowd(aws: Account, count: int, due: timedelta = WEEK) -> list[str]:
    """Workers that have a row and a machine each."""
    names = [f"w-{aws.site.world.ulid()}" for _ in range(count)]
    for at in range(0, count, 50):
        assert aws.site.on.store.commit([Create(idle(aws, name, due)) for name in names[at : at + 50]])
    for name in names:
        aws.launch(name, IMAGE)
    return names


def units(aws: Account, names: list[str]) -> list[Any]:
    """The rows of some units, whole; all at once, for there are many."""
    keys = {f"unit#{name}" for name in names}
    found = [row for row in aws.site.rows() if row["pk"]["S"] in keys]
    assert len(found) == len(names)
    return sorted(found, key=lambda row: str(row["pk"]["S"]))


def submit(aws: Account) -> tuple[str, str]:
    """A job, and its worker whose machine was launched."""
    job = aws.ask("POST", "/v1/jobs", {"script": '#!/bin/bash\necho "on $PENSTOCK_WORKER_ID"\n'})["id"]
    before = set(aws.alive())
    aws.rest()
    (worker,) = set(aws.alive()) - before
    return str(job), worker


@pytest.mark.e2e
def test_a_job_runs_and_the_sweep_tells_a_thousand_machines_apart(
    aws: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = PAGE if MACHINES > PAGE else 100
    monkeypatch.setattr(machines, "PAGE", page)
    (gone,) = crowd(aws, 1, timedelta(minutes=59))
    vanish_in_the_quiet_after_the_first_sweep(aws, gone)
    known = crowd(aws, MACHINES)
    run_a_job(aws, tmp_path)
    strays = [f"w-{aws.site.world.ulid()}" for _ in range(3)]
    for stray in strays:
        aws.launch(stray, IMAGE)
    rows = units(aws, known)
    aws.pages.clear()
    for seconds in (180, 170, 140):  # two comparisons, and more than five minutes between them
        aws.minute(seconds)
    assert set(aws.alive()) == set(known), "strays on the last page are destroyed, and nobody else is"
    assert sum(bool(token) for token in aws.pages) == 2 * (MACHINES // page), "every comparison reads all pages"
    vanished = aws.unit(gone)
    assert vanished
    assert vanished.state is UnitState.GONE
    assert units(aws, known) == rows


def vanish_in_the_quiet_after_the_first_sweep(aws: Account, worker: str) -> None:
    """A machine is listed once, and then no more, while nobody acts upon lists yet; and lists are still short."""
    aws.minute()
    aws.ec2.terminate_instances(InstanceIds=[aws.alive()[worker]])
    for _ in range(9):
        aws.minute()
    unit = aws.unit(worker)
    assert unit
    assert unit.state is UnitState.IDLE


def run_a_job(aws: Account, folder: Path) -> None:
    """From submit until nothing is left of it, in between all the others."""
    job, worker = submit(aws)
    machine = aws.alive()[worker]
    done = aws.boot(machine, folder)
    assert done.returncode == 0, done.stdout
    assert aws.gateway.asked[0] == "GET /v1/agent/agent.pyz 302"
    aws.rest()
    settled = aws.ask("GET", f"/v1/jobs/{job}")
    assert (settled["outcome"], settled["attempt"]) == ("succeeded", 1), (settled, done.stdout)
    said = [line["payload"] for line in aws.ask("GET", f"/v1/jobs/{job}/events")["items"]]
    assert f"on {worker}" in said
    assert worker not in aws.alive()
    aws.wait(RECHECK_SECONDS + 1)
    unit = aws.unit(worker)
    assert unit
    assert unit.state is UnitState.GONE
    aws.tell(ends(machine, REGION))
    assert aws.unit(worker) == unit
