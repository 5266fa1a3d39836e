"""The check of grants on shared hosts knows in which order claims stand: by priority, and only then by age."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from penstock.domain.pools.choices import Choice
from penstock.domain.pools.pools import Claim, Sharing, SlotState, collection, line_of
from penstock.kernel.rows import Row
from simulation.commits import Facts, Moment
from simulation.ports import SimulatedStore
from simulation.share_invariants import nobody_loses_a_host
from simulation.tasks import Task
from tests.domain.helpers import NOW, claim, pool, slot

LAB = "target/lab"
NAMES = tuple(f"a/{part}" for part in range(1, 9))


class Rows(SimulatedStore):
    """Some rows, which nobody reads but the check."""

    def __init__(self, *rows: Row) -> None:
        super().__init__(cast(Any, None))
        for row in rows:
            self.rows[row.key] = self._by_pk[row.key.pk][row.key.sk] = row


def wants(job: str, count: int, **changes: Any) -> Claim:
    takes, choices = ({LAB: count},), (Choice(together=True),)
    line = line_of(takes, fresh=False, choices=choices, owner="ada")
    given = {"pool": LAB, "pools": (LAB,), "takes": takes, "choices": choices, "owner": "ada", "line": line, "step": 0}
    return claim(job, **{**given, "count": count, **changes})


def granted(waiting: Claim, grants: Mapping[str, Claim]) -> Moment:
    """The commit that gave all parts of one host to others than who is waiting."""
    free = {name: slot(name, pool=LAB) for name in NAMES}
    held = {
        name: replace(free[name], state=SlotState.HELD, job=to.job, unit=f"w-{to.job}") for name, to in grants.items()
    }
    lab = pool(name=LAB, names=NAMES, limit=len(NAMES), hosts=True, share=Sharing(len(NAMES)))
    task = Task("serve", lambda: None, lambda task: None, NOW)
    task.looked[collection(LAB)] = 1
    moves: list[tuple[Row | None, Row | None]] = [(free[name], after) for name, after in held.items()]
    moves += [(each, None) for each in {each.job: each for each in grants.values()}.values()]
    return Moment(
        store=Rows(lab, waiting, *held.values(), *(free[name] for name in NAMES if name not in held)),
        facts=Facts(),
        moves=moves,
        before={},
        task=task,
        proofs={},
        cleanings={},
        rests=lambda unit: False,
        running=lambda: iter(()),
    )


@pytest.mark.parametrize(("priority", "found"), [(15, 0), (1, 1)])
def test_what_went_to_a_claim_that_stood_before_both_was_not_there_for_the_second(priority: int, found: int) -> None:
    """QUEUE-2: six of eight parts went to a younger job. If that stood before the one that waits for six, this one
    could not have had them; if it stood behind it, it could."""
    large, small = wants("B", 6, priority=priority), wants("A", 2, priority=10)
    moment = granted(
        wants("C", 6, priority=15),
        {**dict.fromkeys(NAMES[:6], large), **dict.fromkeys(NAMES[6:], small)},
    )
    broken = [says for label, says in nobody_loses_a_host(moment) if "A was granted" in says]
    assert len(broken) == found
