"""A merge gate: what a job takes is counted anew, and is what tests/figures/counts.toml says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.figures import contention, price


@pytest.mark.parametrize(("title", "resources"), price.KINDS.items())
def test_a_job_takes_what_is_committed(title: str, resources: Sequence[str]) -> None:
    found, allowed = price.counts(price.run(resources)), price.allowed()[title]
    assert found == allowed, "a figure that went down is lowered there too; one that went up needs a reason"


def test_every_kind_of_job_has_its_counts() -> None:
    assert set(price.allowed()) == {*price.KINDS, contention.STORM}
