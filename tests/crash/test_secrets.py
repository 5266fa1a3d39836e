"""No secret of a run is in anything that it leaves or says, and one that were would be found. [SEC-1]"""

from __future__ import annotations

from multiprocessing import get_context

import pytest

from tests.crash import secrecy
from tests.crash.secrecy import Report

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("secrecy")]  # whole clouds, one after the other

SCENARIOS = ("hand-over", "lost-worker", "clean", "renew", "hold-on-failure", "exchange")
PLANTED = {
    "rows": "to DynamoDB", "flows": "GetExecutionHistory", "messages": "SendMessage", "logs": "log",
    "errors": "answer of api",
}  # fmt: skip
"""Where a planted leak is found, among other places."""

Reports = dict[tuple[str, str], Report]


@pytest.fixture(scope="module")
def reports() -> Reports:
    """All runs, in a process of their own, for the emulated account is the process's."""
    wanted = [*((scenario, "") for scenario in SCENARIOS), *(("acquire", leak) for leak in secrecy.LEAKS)]
    with get_context("spawn").Pool(1) as pool:
        return dict(zip(wanted, pool.apply(secrecy.runs, (wanted,)), strict=True))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_secret_is_anywhere(reports: Reports, scenario: str) -> None:
    found = reports[scenario, ""]
    assert found.told, "no agent was told a secret: there was nothing to look for"
    wanted = {"answer of api", "answer of agent_api", "event of well", "event of schedule"}
    assert wanted <= found.places
    for operation in ("StartExecution", "GetExecutionHistory", "TransactWriteItems", "Scan", "SendMessage"):
        assert any(operation in place for place in found.places), operation
    assert found.leaks == []


def test_what_a_well_said_when_it_failed_was_told_without_its_key(reports: Reports) -> None:
    """The well of one of the runs above says its key; people read what it said, without that."""
    assert "answer of api" in reports["renew", ""].grumbles


@pytest.mark.parametrize("leak", PLANTED)
def test_a_leak_is_found(reports: Reports, leak: str) -> None:
    assert any(PLANTED[leak] in where for where in reports["acquire", leak].leaks)
