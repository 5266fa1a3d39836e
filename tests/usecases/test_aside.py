"""Nothing is reserved for a claim that waits for what no job's end brings back. [QUEUE-1] [QUEUE-2]

Otherwise a quota stands free, for days, and everybody who needs it waits for an operator whom they do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from penstock.domain.pools.grants import MAX_OVERTAKEN
from penstock.domain.pools.pools import Claim, Slot, pool_key
from penstock.domain.units.units import Unit
from penstock.domain.users.users import User
from penstock.kernel.errors import Unknown
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.pools import aside, serving
from penstock.usecases.site import apply
from penstock.usecases.units.release import enter_quarantine
from tests.usecases.steps import finish, hello, submit, sweep, worker_of
from tests.usecases.warm import unit_of

LIC = "quota/lic"


def site(twin: Twin, amount: int, bench: Mapping[str, Any]) -> None:
    """Two targets that use one quota."""
    factories = {"hand": {"driver": "hand"}, "lab": {"driver": "hosts"}}
    targets = {"bench": {"uses": {"lic": 1}, **bench}, "linux": {"factory": "hand", "limit": 5, "uses": {"lic": 1}}}
    text = site_toml(factories=factories, targets=targets, quotas={"lic": amount})
    apply.apply(twin.on, "root", text, "site.toml")
    twin.run()


def overtakes(twin: Twin, ada: User, most: int) -> int:
    """How many jobs of the other target run one after the other while one waits for a bench."""
    first = submit(twin, ada, target="linux")
    twin.run()
    hello(twin, first)
    submit(twin, ada, target="bench")
    for done in range(most):
        following = submit(twin, ada, target="linux")
        twin.run()
        finish(twin, first)
        sweep(twin)
        if not any(isinstance(row, Slot) and row.job == following for row in twin.store.rows.values()):
            return done
        hello(twin, following)
        first = following
    return most


def test_a_quota_is_not_kept_for_who_waits_for_a_host_that_is_away(twin: Twin, ada: User) -> None:
    site(twin, 1, {"factory": "lab", "names": ["bench-7"]})
    assert overtakes(twin, ada, 3 * MAX_OVERTAKEN) == 3 * MAX_OVERTAKEN
    rows = [row for row in twin.store.rows.values() if isinstance(row, Claim) and row.pool == LIC]
    assert [row.overtaken for row in rows] == [MAX_OVERTAKEN], "more is not counted, for nothing is kept for it"


def test_a_quota_is_not_kept_for_who_waits_for_a_slot_in_quarantine(twin: Twin, ada: User) -> None:
    """Its own share of the quota stays with what is in quarantine."""
    site(twin, 2, {"factory": "hand", "limit": 1})
    running = submit(twin, ada, target="bench")
    twin.run()
    hello(twin, running)
    worker = worker_of(twin, running)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twin.drivers.hand, "destroy", lambda *_: _raise(Unknown("it does not answer")))
        finish(twin, running)
        assert twin.store.get(worker.key, Unit)
    enter_quarantine(twin.on, unit_of(twin, worker.id), "it does not answer")
    twin.run()
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) == 2 * MAX_OVERTAKEN


def _raise(error: Exception) -> None:
    raise error


def test_a_quota_is_kept_for_who_waits_for_a_job_to_end(twin: Twin, ada: User) -> None:
    site(twin, 2, {"factory": "hand", "limit": 1})
    running = submit(twin, ada, target="bench")
    twin.run()
    hello(twin, running)
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) < 2 * MAX_OVERTAKEN


def test_of_a_paused_pool_nothing_is_read(twin: Twin, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has, nobody is granted anyway."""
    site(twin, 1, {"factory": "lab", "names": ["bench-7"]})
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) == 2 * MAX_OVERTAKEN
    read = set[str]()
    monkeypatch.setattr(aside, "read", lambda on, pool: [read.add(pool.name)][:0])
    serving.stocks_of(twin.on, LIC)
    assert read == {LIC, "target/bench"}
    apply.pause(twin.on, "target/bench", paused=True)
    read.clear()
    assert "target/bench" in serving.stocks_of(twin.on, LIC)
    assert read == {LIC}


def test_a_claim_for_which_something_is_reserved_may_wait_for_a_pool_that_is_gone(twin: Twin, ada: User) -> None:
    site(twin, 1, {"factory": "lab", "names": ["bench-7"]})
    assert overtakes(twin, ada, 2 * MAX_OVERTAKEN) == 2 * MAX_OVERTAKEN
    del twin.store.rows[pool_key("target/bench")]
    assert "target/bench" not in serving.stocks_of(twin.on, LIC)
