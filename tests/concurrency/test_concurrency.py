"""Many processes at once: nobody gets what another has, and everybody gets what they wait for, in their turn.

[SLOT-1] [SLOT-2] [SLOT-3] [QUEUE-1] [QUEUE-2]
"""

from __future__ import annotations

import pytest

from tests.concurrency import audit
from tests.concurrency.run import Size, run

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("concurrency")]
TRIES = 20
"""Who comes when is the machine's affair: processes may not meet in the first run, nor take from each other."""
SMALL = Size(claims=20, processes=4)


def test_contended_claims_are_granted_once_each_and_in_order() -> None:
    lost = overtaken = 0
    for seed in range(1, TRIES + 1):
        left = run(SMALL, seed=seed)
        assert audit.broken(left) == []
        assert audit.claims(left.lines) >= SMALL.claims
        assert audit.least_share(left.lines, SMALL.processes) >= audit.SHARE
        lost, overtaken = lost + left.lost, overtaken + audit.overtaken(left)
        if lost and overtaken:
            return
    pytest.fail(f"in {TRIES} runs {lost} commits lost a race, and {overtaken} claims were overtaken")


def test_a_store_that_forgets_its_conditions_is_found_out() -> None:
    """The control: with the conditions of the same store dropped, the same harness finds what they prevent."""
    found: list[str] = []
    for seed in range(1, TRIES + 1):
        found += audit.broken(run(Size(claims=10, processes=4), seed=seed, dropped="all"))
        if all(any(what in says for says in found) for what in ("has two holders", "was replaced twice")):
            return
    pytest.fail(f"nothing of the kind was found in {TRIES} tries: {found}")
