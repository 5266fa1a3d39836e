"""What an alarm's name means, and which come first."""

from __future__ import annotations

import re

import pytest

from penstock.domain.alarms import RUNBOOKS, SECTIONS, Alarm, AlarmState, in_order, read_name
from penstock.sources import ROOT


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Penstock-SweepStopped", ("SweepStopped", "")),
        ("Penstock-FunctionErrors-agent_api", ("FunctionErrors", "agent_api")),
        ("Penstock-test-SweepStopped", None),  # that of the deployment Penstock-test
        ("Penstock-Humidity", None),
        ("PenstockSweepStopped", None),
        ("SweepStopped", None),
        ("Other-SweepStopped", None),
    ],
)
def test_only_the_deployments_own_alarms_are_read(name: str, found: tuple[str, str] | None) -> None:
    assert read_name(name, "Penstock") == found


def alarm(name: str, state: AlarmState) -> Alarm:
    return Alarm(name, "Untidy", "", "", state, None, "")


def test_raised_alarms_come_first_and_each_kind_by_name() -> None:
    ok, unknown, raised = AlarmState.OK, AlarmState.UNKNOWN, AlarmState.RAISED
    rows = [alarm("c", ok), alarm("b", ok), alarm("x", unknown), alarm("z", raised), alarm("y", raised)]
    assert [row.name for row in in_order(rows)] == ["y", "z", "x", "b", "c"]


def test_each_runbook_is_a_section_of_the_documentation() -> None:
    text = (ROOT / RUNBOOKS).read_text()
    documented = re.findall(r"^### (\w+)$", text.partition("\n## Alarms\n")[2], re.M)
    assert set(documented) == SECTIONS
    assert alarm("x", AlarmState.OK).runbook == "docs/operators/operations.md#untidy"
