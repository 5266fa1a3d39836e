from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest
from moto import mock_aws
from moto.core import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends
from mypy_boto3_dynamodb.type_defs import KeySchemaElementTypeDef

from penstock.aws import dynamodb
from penstock.aws.dynamodb import Table

INDEXES = (("due", "due_shard", "due"), ("listing", "list_key", "list_sort"))
NAMES = ("pk", "sk", "due_shard", "due", "list_key", "list_sort")


@pytest.fixture(scope="module")
def emulated() -> Iterator[None]:
    """An empty table on moto's DynamoDB. What DynamoDB itself does in a race is asked of the local cloud."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.delenv("AWS_ENDPOINT_URL", raising=False)
        dynamodb.model.cache_clear()  # whose connection goes where it went first: maybe to another emulator
        boto3.client("dynamodb", "us-east-1").create_table(
            TableName="state",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=keys("pk", "sk"),
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in NAMES],
            GlobalSecondaryIndexes=[
                {"IndexName": name, "KeySchema": keys(*own), "Projection": {"ProjectionType": "KEYS_ONLY"}}
                for name, *own in INDEXES
            ],
        )
        yield
        dynamodb.model.cache_clear()


def keys(partition: str, sort: str) -> list[KeySchemaElementTypeDef]:
    return [{"AttributeName": partition, "KeyType": "HASH"}, {"AttributeName": sort, "KeyType": "RANGE"}]


@pytest.fixture
def table(emulated: None) -> Table:
    """The real store on an empty table."""
    dynamodb_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].tables["state"].items.clear()
    return Table("state", "us-east-1")
