"""A host's life on the store that is deployed: its rows and its slot's states are stored and found there too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.aws.dynamodb import Table
from penstock.domain.users.users import User
from penstock.testing.twin import START, Twin
from penstock.usecases import sweep
from tests.usecases.lab_hosts import LAB, LEASE, Bench, apply, host_of, states
from tests.usecases.steps import submit


def test_a_host_comes_works_and_goes(table: Table) -> None:
    twin = Twin()
    store: Any = table
    twin.store, twin.on = store, replace(twin.on, store=store)
    apply(twin, LAB)
    job = submit(twin, User(name="ada", created=START), target="lab")
    twin.run()
    bench = Bench(twin)
    bench.ask()
    assert bench.run() == job
    assert states(twin) == {"bench-7": "free", "bench-8": "away"}
    twin.pass_time(LEASE)
    assert [due.key for due in table.overdue("host.0", twin.world.now())] == [host_of(twin).key]
    sweep.nudge(twin.on, "host", host_of(twin).key)
    twin.run()
    assert states(twin) == {"bench-7": "away", "bench-8": "away"}
