"""Who may talk to the local cloud: this machine's owner, and the functions within what they are granted."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.local.conftest import Host

NO_CREDENTIALS = {"x-amz-target": "DynamoDB_20120810.ListTables", "content-type": "application/x-amz-json-1.0"}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1"},
        {"Host": "evil.example"},
        {"Host": "evil.example", "Origin": "http://evil.example"},
    ],
)
def test_pages_of_others_are_refused(host: Host, headers: dict[str, str]) -> None:
    assert host.ask("GET", "/_ministack/health", headers=headers).status_code == 403


def test_a_page_of_another_port_is_refused_and_one_of_its_own_is_not(host: Host) -> None:
    port = int(host.url.rpartition(":")[2])
    assert host.ask("GET", "/_ministack/health", headers={"Origin": host.url}).status_code == 200
    for other in (f"http://127.0.0.1:{port + 1}", f"https://127.0.0.1:{port}", f"http://localhost:{port}"):
        assert host.ask("GET", "/_ministack/health", headers={"Origin": other}).status_code == 403
    both = [("Origin", host.url), ("Origin", "http://evil.example")]
    assert host.ask("GET", "/_ministack/health", headers=both).status_code == 403


def test_aws_services_want_the_owners_key(host: Host) -> None:
    assert host.ask("POST", "/", headers=NO_CREDENTIALS, content="{}").status_code == 403
    forged = {**NO_CREDENTIALS, "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4"}
    assert host.ask("POST", "/", headers=forged, content="{}").status_code == 403
    assert host.client("dynamodb").list_tables()["TableNames"] == []


def test_the_emulators_administration_is_refused(host: Host) -> None:
    assert host.ask("POST", "/_ministack/reset").status_code == 403


def test_a_role_may_do_what_it_is_granted_and_no_more(host: Host) -> None:
    client = host.acting_as("reader", {"Effect": "Allow", "Action": "sqs:ListQueues", "Resource": "*"}, "sqs")
    client.list_queues()
    with pytest.raises(ClientError, match="AccessDenied"):
        client.create_queue(QueueName="no")


def test_the_meter_counts_and_starts_anew(host: Host) -> None:
    assert host.ask("POST", "/_penstock/meter/reset").status_code == 200
    dynamodb = host.client("dynamodb")
    dynamodb.create_table(
        TableName="metered",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    dynamodb.put_item(TableName="metered", Item={"pk": {"S": "a"}, "filler": {"S": "x" * 1500}})
    answer = dynamodb.get_item(TableName="metered", Key={"pk": {"S": "a"}}, ConsistentRead=True)
    host.function("metered", "def handler(event, context): pass")({})
    reading = host.ask("GET", "/_penstock/meter").json()
    assert answer["Item"]["pk"] == {"S": "a"}
    assert reading["operations"]["dynamodb:PutItem"] == 1
    assert reading["dynamodb units"] == {"read": 1, "write": 2}
    assert reading["calls"] == {"metered": 1}
    assert reading["by"]["outside dynamodb:PutItem"] == 1
    host.ask("POST", "/_penstock/meter/reset")
    assert host.ask("GET", "/_penstock/meter").json() == {}
