"""A merge gate: the way from a submit to the script has no more hops, and takes no longer, than is committed."""

from __future__ import annotations

import pytest

from tests.figures import latency


@pytest.mark.parametrize(("title", "most"), latency.MOST_MS.items())
def test_the_way_to_the_script(title: str, most: float) -> None:
    hops = latency.run(warm=title == latency.IDLE)
    assert [hop.name for hop in hops] == ["api", "factory", "agent_api"]
    assert sum(hop.ms for hop in hops) == most, "a figure that went down is lowered there too"
