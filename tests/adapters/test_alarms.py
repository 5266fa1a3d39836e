"""Alarms and dead letters as AWS answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from penstock.aws.alarms import PAGE, PAGES, CloudWatchAlarms, SqsDeadLetters
from penstock.domain.alarms import Alarm, AlarmState, DeadLetterQueue
from penstock.kernel.errors import Unreached

THEN, LATER = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
REFUSED = ClientError({"Error": {"Code": "AccessDenied", "Message": "not authorized"}}, "Describe")


def row(name: str, state: str = "OK", **more: Any) -> dict[str, Any]:
    """An alarm as CloudWatch describes it."""
    what = 'It failed. What to do: docs/operators/operations.md, "FunctionErrors".'
    shown = {"AlarmName": name, "StateValue": state, "AlarmDescription": what, "StateReason": "3 > 1"}
    return {**shown, "StateUpdatedTimestamp": LATER, "StateTransitionedTimestamp": THEN, **more}


class Watch:
    """CloudWatch with some pages of alarms."""

    def __init__(self, *pages: Any) -> None:
        self.pages = pages
        self.asked: list[dict[str, Any]] = []

    def describe_alarms(self, **asked: Any) -> Any:
        self.asked.append(asked)
        at = int(asked.get("NextToken", "0"))
        if isinstance(self.pages[at], Exception):
            raise self.pages[at]
        more = {"NextToken": str(at + 1)} if at + 1 < len(self.pages) else {}
        return {"MetricAlarms": self.pages[at], **more}


def test_an_alarm_is_read() -> None:
    client = Watch([row("Here-FunctionErrors-api", "ALARM")])
    assert CloudWatchAlarms(client, "Here").read() == [
        Alarm("Here-FunctionErrors-api", "FunctionErrors", "api", "It failed", AlarmState.RAISED, THEN, "3 > 1")
    ]
    assert client.asked == [{"AlarmNamePrefix": "Here-", "AlarmTypes": ["MetricAlarm"], "MaxRecords": PAGE}]


def test_what_cloudwatch_need_not_say_may_be_missing() -> None:
    bare = {"AlarmName": "Here-Untidy", "StateValue": "INSUFFICIENT_DATA"}
    (found,) = CloudWatchAlarms(Watch([bare]), "Here").read()
    assert found == Alarm("Here-Untidy", "Untidy", "", "", AlarmState.UNKNOWN, None, "")
    updated = row("Here-Untidy")
    del updated["StateTransitionedTimestamp"]
    assert CloudWatchAlarms(Watch([updated]), "Here").read()[0].since == LATER


def test_all_pages_are_read_without_alarms_of_others() -> None:
    client = Watch([row("Here-Untidy")], [row("Here-test-Untidy")], [row("Here-Strays")])
    assert [alarm.name for alarm in CloudWatchAlarms(client, "Here").read()] == ["Here-Untidy", "Here-Strays"]
    assert [asked.get("NextToken") for asked in client.asked] == [None, "1", "2"]


def test_the_number_of_calls_is_bounded() -> None:
    """A raised alarm may be on a page that is not read, so it is not said that there is none."""
    most = Watch(*[[row("Here-Untidy")]] * PAGES)
    assert len(CloudWatchAlarms(most, "Here").read()) == PAGES
    client = Watch(*[[row("Here-Untidy")]] * (PAGES + 1))
    with pytest.raises(Unreached, match=f"more than {PAGE * PAGES} alarms have names that begin with Here-"):
        CloudWatchAlarms(client, "Here").read()
    assert len(client.asked) == PAGES


@pytest.mark.parametrize("error", [REFUSED, NoCredentialsError()])
def test_alarms_that_may_not_be_read_are_unreached(error: Exception) -> None:
    with pytest.raises(Unreached, match=r"not authorized|credentials"):
        CloudWatchAlarms(Watch(error), "Here").read()


class Letters:
    """SQS with so many messages in each queue: visible, taken at the moment, delayed."""

    def __init__(self, **queues: Any) -> None:
        self.queues = queues
        self.asked: list[str] = []

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> Any:
        self.asked.append(QueueUrl)
        found = self.queues[QueueUrl]
        if isinstance(found, Exception):
            raise found
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        counts = dict(zip((*names, "ApproximateNumberOfMessagesDelayed"), map(str, found), strict=True))
        shown = {"QueueArn": f"arn:{QueueUrl}", **counts}
        return {"Attributes": {name: shown[name] for name in AttributeNames}}


def test_a_dead_letter_counts_while_somebody_looks_at_it_too() -> None:
    client: Any = Letters(a=(3, 20, 100), b=(0, 0, 0))
    assert SqsDeadLetters(client, {"well": "b", "factory": "a"}).read() == [
        DeadLetterQueue("factory", 123, "a", "arn:a"),
        DeadLetterQueue("well", 0, "b", "arn:b"),
    ]


@pytest.mark.parametrize("error", [REFUSED, NoCredentialsError(), Unreached("sqs did not take it: credentials")])
def test_after_a_queue_that_does_not_answer_no_other_is_asked(error: Exception) -> None:
    """Each may take seconds to fail, and a page waits."""
    client: Any = Letters(a=error, b=(0, 0, 0))
    with pytest.raises(Unreached, match=r"not authorized|credentials"):
        SqsDeadLetters(client, {"factory": "a", "well": "b"}).read()
    assert client.asked == ["a"]
