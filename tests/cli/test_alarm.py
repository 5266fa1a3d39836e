"""penstock alarm."""

from __future__ import annotations

import json

from tests.cli.alarms import ALARM, QUEUE, RAISED, UNKNOWN
from tests.cli.conftest import Run
from tests.cli.service import Service


def test_alarms_are_listed(penstock: Run) -> None:
    shown = [line.split() for line in penstock("alarm", "list").stdout.splitlines()]
    assert [line[:2] for line in shown] == [
        ["STATE", "ALARM"],
        ["alarm", "Unlisted"],
        ["insufficient", "data"],
        ["ok", "Strays"],
    ]
    assert json.loads(penstock("alarm", "list", "--json").stdout) == [RAISED, UNKNOWN, ALARM]


def test_only_raised_alarms_are_listed(penstock: Run, service: Service) -> None:
    assert json.loads(penstock("alarm", "list", "--raised", "--json").stdout) == [RAISED]
    service.alarms["alarms"]["items"] = [ALARM]
    assert penstock("alarm", "list", "--raised").stderr == "no alarm is raised\n"
    service.alarms["alarms"]["items"] = []
    assert penstock("alarm", "list", "--raised").stderr == "this deployment has no alarms\n"


def test_dead_letters_are_listed(penstock: Run) -> None:
    shown = [line.split() for line in penstock("alarm", "dead-letters").stdout.splitlines()]
    assert shown == [["QUEUE", "MESSAGES", "URL"], ["factory", "2", "https://sqs/1/factory-dead"]]
    assert json.loads(penstock("alarm", "dead-letters", "--json").stdout) == [QUEUE]


def test_what_is_not_known_is_an_error_and_not_none(penstock: Run, service: Service) -> None:
    service.alarms["alarms"] |= {"problem": "CloudWatch does not say", "items": [], "count": None, "of": None}
    run = penstock("alarm", "list")
    assert (run.exit_code, run.stdout, run.stderr) == (5, "", "error: CloudWatch does not say\n")
    assert json.loads(penstock("alarm", "dead-letters", "--json").stdout) == [QUEUE]
