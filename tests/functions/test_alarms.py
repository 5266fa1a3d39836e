"""The alarms and dead letters, as operators read them."""

from __future__ import annotations

from typing import Any

from penstock.domain.alarms import Alarm, AlarmState, DeadLetterQueue
from penstock.testing.twin import START
from tests.functions.service import Service, conforms, refused

OK = Alarm("P-Strays", "Strays", "", "Something with our tag exists", AlarmState.OK, START, "fine")
RAISED = Alarm("P-Unlisted-x", "Unlisted", "x", "Not listed", AlarmState.RAISED, None, "2 > 1")


def look(service: Service) -> dict[str, Any]:
    shown = service.ask("GET", "/v1/alarms", as_="root").json
    conforms(shown, "AlarmsView")
    return dict(shown)


def test_alarms_are_shown_with_what_they_are_about(service: Service) -> None:
    service.twin.alarms.found = [OK, RAISED]
    shown = look(service)["alarms"]
    assert (shown["count"], shown["of"], shown["problem"]) == (1, 2, None)
    assert shown["items"] == [
        {
            "name": "P-Unlisted-x", "section": "Unlisted", "of": "x", "what": "Not listed", "state": "alarm",
            "since": None, "reason": "2 > 1", "runbook": "docs/operators/operations.md#unlisted",
        },
        {
            "name": "P-Strays", "section": "Strays", "of": None, "what": "Something with our tag exists",
            "state": "ok", "since": "2026-01-01T00:00:00.000Z", "reason": "fine",
            "runbook": "docs/operators/operations.md#strays",
        },
    ]  # fmt: skip


def test_dead_letters_are_added_up(service: Service) -> None:
    service.twin.dead_letters.found = [DeadLetterQueue("factory", 2, "u", "a"), DeadLetterQueue("well", 3, "v", "b")]
    shown = look(service)["dead_letters"]
    assert (shown["count"], shown["problem"]) == (5, None)
    assert shown["items"][0] == {"of": "factory", "messages": 2, "url": "u", "arn": "a"}
    assert shown["runbook"] == "docs/operators/operations.md#deadletters"


def test_a_service_that_does_not_answer_is_said_and_the_other_is_shown(service: Service) -> None:
    """Nobody takes for none what is not known."""
    service.twin.alarms.found, service.twin.alarms.fails = [RAISED], "cloudwatch did not take DescribeAlarms: 503"
    service.twin.dead_letters.found = [DeadLetterQueue("factory", 2, "u", "a")]
    shown = look(service)
    assert shown["alarms"] == {
        "count": None,
        "of": None,
        "problem": "CloudWatch does not say how the alarms are: cloudwatch did not take DescribeAlarms: 503",
        "items": [],
    }
    assert shown["dead_letters"]["count"] == 2
    service.twin.alarms.fails, service.twin.dead_letters.fails = "", "no answer"
    shown = look(service)
    assert shown["alarms"]["count"] == 1
    letters = shown["dead_letters"]
    assert (letters["count"], letters["items"]) == (None, [])
    assert letters["problem"] == "SQS does not say how many dead letters there are: no answer"


def test_a_deployment_without_alarms_has_none(service: Service) -> None:
    shown = look(service)
    assert shown["alarms"] == {"count": 0, "of": 0, "problem": None, "items": []}
    assert (shown["dead_letters"]["count"], shown["dead_letters"]["items"]) == (0, [])


def test_they_are_for_operators(service: Service) -> None:
    """SEC-2: they name what runs in the account."""
    refused(service.ask("GET", "/v1/alarms"), 403, "privilege-missing")
    refused(service.ask("GET", "/v1/alarms", as_=None), 401, "no-token")


def test_nothing_changes_while_nothing_happens(service: Service) -> None:
    service.twin.alarms.found = [OK, RAISED]
    tag = service.ask("GET", "/v1/alarms", as_="root").headers["etag"]
    service.twin.pass_time(1)
    assert service.ask("GET", "/v1/alarms", as_="root", headers={"if-none-match": tag}).status == 304
