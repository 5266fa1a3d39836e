"""Many processes at once: nobody gets what another has, and everybody gets what they wait for, in their turn.

[SLOT-1] [SLOT-2] [SLOT-3] [QUEUE-1] [QUEUE-2]
"""

from __future__ import annotations

import pytest

from tests.concurrency import audit
from tests.concurrency.run import Size, run

SMALL = Size(claims=50, processes=4)


@pytest.mark.xdist_group("concurrency")
def test_contended_claims_are_granted_once_each_and_in_order() -> None:
    left = run(SMALL, seed=1)
    assert audit.broken(left) == []
    assert audit.claims(left.lines) >= SMALL.claims
    assert left.lost > 0, "nobody raced with anybody, so nothing was tried"
    assert audit.overtaken(left) > 0, "no claim was taken from, so the bound was not tried"


@pytest.mark.xdist_group("concurrency")
def test_a_store_that_forgets_its_conditions_is_found_out() -> None:
    """The control: with the conditions of the same store dropped, the same harness finds what they prevent."""
    left = run(Size(claims=20, processes=4), seed=1, dropped="all")
    found = audit.broken(left)
    assert any("has two holders" in says for says in found), found
    assert any("was replaced twice" in says for says in found), found
