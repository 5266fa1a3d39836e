"""What operators see of alarms and dead letters: states in CloudWatch, and counts in SQS. Only the API imports it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from penstock.domain.alarms import MEANING_ENDS, Alarm, AlarmState, DeadLetterQueue, read_name
from penstock.kernel.errors import Unreached

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

PAGE, PAGES = 100, 5
"""How many alarms a page has at most, and how many pages are read. A deployment has fewer than a hundred alarms; others
whose names begin with this one's are among those that are read. Source: the CloudWatch API reference, DescribeAlarms.
"""


class CloudWatchAlarms:
    """The alarms of a deployment, which are known by the beginning of their names."""

    def __init__(self, client: Any, deployment: str) -> None:
        self._client = client
        self._deployment = deployment

    def read(self) -> Sequence[Alarm]:
        """All alarms of the deployment. Raises Unreached; also if there are more pages than are read."""
        try:
            rows = [row for page in self._pages() for row in page["MetricAlarms"]]
        except (BotoCoreError, ClientError) as error:
            raise Unreached(str(error)) from error
        return [alarm for row in rows if (alarm := _alarm(row, self._deployment))]

    def _pages(self) -> Iterator[Mapping[str, Any]]:
        wanted = {"AlarmNamePrefix": f"{self._deployment}-", "AlarmTypes": ["MetricAlarm"], "MaxRecords": PAGE}
        more: Mapping[str, str] = {}
        for _ in range(PAGES):
            page = self._client.describe_alarms(**wanted, **more)
            yield page
            if not page.get("NextToken"):
                return
            more = {"NextToken": page["NextToken"]}
        raise Unreached(f"more than {PAGE * PAGES} alarms have names that begin with {self._deployment}-")


def _alarm(row: Mapping[str, Any], deployment: str) -> Alarm | None:
    """An alarm of the deployment; None for one of another."""
    found = read_name(row["AlarmName"], deployment)
    return found and Alarm(
        name=row["AlarmName"],
        section=found[0],
        of=found[1],
        what=row.get("AlarmDescription", "").partition(MEANING_ENDS)[0],
        state=AlarmState(row["StateValue"].lower()),
        since=row.get("StateTransitionedTimestamp") or row.get("StateUpdatedTimestamp"),
        reason=row.get("StateReason", ""),
    )


COUNTS: Sequence[QueueAttributeNameType] = (
    "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed",
)  # fmt: skip
"""A message is in one of them. They may be wrong until a minute after the last was sent or deleted. Source: the SQS API
reference, GetQueueAttributes.
"""


class SqsDeadLetters:
    """Dead-letter queues, by the queue that each belongs to."""

    def __init__(self, client: SQSClient, urls: Mapping[str, str]) -> None:
        self._client = client
        self._urls = urls

    def read(self) -> Sequence[DeadLetterQueue]:
        """All queues, by name. After the first that does not answer, no other is asked. Raises Unreached."""
        try:
            return [self._read(of, url) for of, url in sorted(self._urls.items())]
        except (BotoCoreError, ClientError) as error:
            raise Unreached(str(error)) from error

    def _read(self, of: str, url: str) -> DeadLetterQueue:
        found = self._client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn", *COUNTS])["Attributes"]
        return DeadLetterQueue(of, sum(int(found.get(each, 0)) for each in COUNTS), url, found["QueueArn"])
