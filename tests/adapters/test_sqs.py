"""Messages as they are sent to SQS."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.aws.sqs import SqsQueues


class Client:
    """Remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send_message(self, **message: Any) -> None:
        self.sent.append(message)


@pytest.mark.parametrize(("is_worker", "url"), [(True, "factory"), (False, "well")])
def test_a_message_belongs_to_the_group_of_its_maker(is_worker: bool, url: str) -> None:
    """A fair queue delivers other groups first while one takes much of the time of all."""
    client = Client()
    queues = SqsQueues(client, "schedule", "serve", "factory", "well", "sweep")  # type: ignore[arg-type]
    queues.advance("u-1", is_worker, 5, "spring")
    queues.advance("u-1", is_worker, 1000)
    first, second = client.sent
    assert first == {
        "QueueUrl": url, "MessageBody": '{"form": 1, "unit": "u-1"}', "DelaySeconds": 5, "MessageGroupId": "spring"
    }  # fmt: skip
    assert second == {"QueueUrl": url, "MessageBody": '{"form": 1, "unit": "u-1"}', "DelaySeconds": 900}


def test_a_request_for_console_output_names_the_unit_as_every_message_of_a_factory_does() -> None:
    """A release that does not know the request takes the unit's next step."""
    client = Client()
    queues = SqsQueues(client, "schedule", "serve", "factory", "well", "sweep")  # type: ignore[arg-type]
    queues.console("w-1", "root", "spring")
    assert client.sent == [
        {
            "QueueUrl": "factory", "MessageBody": '{"form": 1, "unit": "w-1", "do": "console", "by": "root"}',
            "DelaySeconds": 0, "MessageGroupId": "spring",
        }
    ]  # fmt: skip


def test_a_factory_is_sent_the_next_step_of_a_hosts_power() -> None:
    client = Client()
    queues = SqsQueues(client, "schedule", "serve", "factory", "well", "sweep")  # type: ignore[arg-type]
    queues.power("bench-7", 5, "lab")
    queues.power("bench-7", 3600)
    body = '{"form": 1, "do": "power", "host": "bench-7"}'
    first = {"QueueUrl": "factory", "MessageBody": body, "DelaySeconds": 5, "MessageGroupId": "lab"}
    assert client.sent == [first, {"QueueUrl": "factory", "MessageBody": body, "DelaySeconds": 900}]


def test_each_request_to_serve_is_a_message_of_its_own() -> None:
    """SQS drops a message of a FIFO queue with the same id of deduplication as one of the last five minutes."""
    client = Client()
    queues = SqsQueues(client, "schedule", "serve", "factory", "well", "sweep")  # type: ignore[arg-type]
    for group in ("quota/a", "quota/a", "quota/b" + "b" * 200):
        queues.serve(["target/linux", "quota/a"], group)
    first, second, other = client.sent
    assert (first["QueueUrl"], json.loads(first["MessageBody"])) == (
        "serve", {"form": 1, "do": "serve", "pools": ["target/linux", "quota/a"], "group": "quota/a"}
    )  # fmt: skip
    assert first["MessageGroupId"] == second["MessageGroupId"] != other["MessageGroupId"]
    assert len({sent["MessageDeduplicationId"] for sent in client.sent}) == 3
    assert all(len(sent["MessageGroupId"]) <= 128 for sent in client.sent)
    assert not any("DelaySeconds" in sent for sent in client.sent), "a FIFO queue takes none"
