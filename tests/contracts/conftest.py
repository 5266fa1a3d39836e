from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws

from penstock.aws import dynamodb
from penstock.aws.dynamodb import Table


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    """The real store on moto's DynamoDB. What DynamoDB itself does in a race is asked of the local cloud."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    dynamodb.model.cache_clear()  # whose connection goes where it went first: maybe to another emulator
    with mock_aws():
        index = [
            {
                "IndexName": name,
                "KeySchema": [{"AttributeName": h, "KeyType": "HASH"}, {"AttributeName": r, "KeyType": "RANGE"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            for name, h, r in (("due", "due_shard", "due"), ("listing", "list_key", "list_sort"))
        ]
        names = ("pk", "sk", "due_shard", "due", "list_key", "list_sort")
        boto3.client("dynamodb", "us-east-1").create_table(
            TableName="state",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            GlobalSecondaryIndexes=index,
        )
        yield Table("state", "us-east-1")
