"""No secret of a run is in anything that it leaves or says. [SEC-1]"""

from __future__ import annotations

from multiprocessing import get_context

import pytest

from tests.crash import secrecy


@pytest.mark.parametrize("scenario", ["hand-over", "lost-worker", "clean"])
def test_no_secret_is_anywhere(scenario: str) -> None:
    """In a process of its own, for the emulated account is the process's."""
    with get_context("spawn").Pool(1) as pool:
        found = pool.apply(secrecy.run, (scenario,))
    assert found.told, "no agent was told a secret: there was nothing to look for"
    wanted = {"answer of api", "answer of agent_api", "event of well", "event of settle", "event of schedule"}
    assert wanted <= found.places
    for operation in ("StartExecution", "GetExecutionHistory", "TransactWriteItems", "Scan", "SendMessage"):
        assert any(operation in place for place in found.places), operation
    assert found.leaks == []
