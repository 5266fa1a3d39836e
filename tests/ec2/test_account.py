"""An emulated account is its own, whatever else was tested in the same process."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from pynamodb.exceptions import PynamoDBException

from penstock.aws import dynamodb
from penstock.aws.dynamodb import Table
from penstock.domain.users.users import User, user_key
from tests.crash.site import REGION
from tests.ec2.account import account


def test_a_table_of_the_same_name_that_was_asked_elsewhere_before_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store's clients are kept for a process, and go where they went first: to moto, which has no such table."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "test")
        patch.delenv("AWS_ENDPOINT_URL", raising=False)
        with mock_aws(), pytest.raises((ClientError, PynamoDBException)):
            Table("state", REGION).get(user_key("root"), User)
    with account(monkeypatch) as made:
        assert made.site.on.store.get(user_key("root"), User)


def test_its_own_is_not_asked_by_whoever_comes_after(monkeypatch: pytest.MonkeyPatch) -> None:
    with account(monkeypatch):
        assert dynamodb.model.cache_info().currsize == 1
    assert dynamodb.model.cache_info().currsize == 0
