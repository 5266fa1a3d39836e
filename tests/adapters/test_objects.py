"""Objects over an emulated S3: what is listed comes in order and in pages, and what is deleted is gone. [ART-2]"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from penstock.adapters.objects import S3Objects


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        made = boto3.client("s3", region_name="us-east-1")
        made.create_bucket(Bucket="bucket")
        yield made


@pytest.fixture
def objects(client: Any) -> S3Objects:
    for number in (2, 0, 3, 1):
        client.put_object(Bucket="bucket", Key=f"artifacts/{number}", Body=b"x" * number)
    client.put_object(Bucket="bucket", Key="others/1", Body=b"")
    return S3Objects(client, "bucket")


def names(objects: S3Objects, after: str, limit: int) -> list[str]:
    return [each.name.removeprefix("artifacts/") for each in objects.list("artifacts/", after, limit)]


def test_objects_are_listed_in_order_behind_a_name_and_below_a_prefix(objects: S3Objects) -> None:
    assert names(objects, "", 9) == ["0", "1", "2", "3"]
    assert names(objects, "artifacts/1", 9) == ["2", "3"]
    assert names(objects, "artifacts/1", 1) == ["2"]
    assert names(objects, "artifacts/3", 9) == []
    (first,) = objects.list("artifacts/", "artifacts/2", 1)
    assert (first.size, first.time.tzinfo is not None) == (3, True)


def test_a_page_that_is_shorter_than_was_asked_for_is_followed_by_the_next(
    objects: S3Objects, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3 gives fewer than that when it likes; only what it says tells the end."""
    listing = client.list_objects_v2
    monkeypatch.setattr(client, "list_objects_v2", lambda **given: listing(**{**given, "MaxKeys": 1}))
    assert names(objects, "", 3) == ["0", "1", "2"]
    assert names(objects, "", 9) == ["0", "1", "2", "3"]


def test_a_list_that_cannot_be_had_is_an_error(client: Any) -> None:
    with pytest.raises(client.exceptions.ClientError):
        S3Objects(client, "none").list("artifacts/", "", 9)


def test_what_is_deleted_is_not_there_and_may_be_deleted_again(objects: S3Objects) -> None:
    assert objects.size("artifacts/2") == 2
    for _ in range(2):
        objects.delete("artifacts/2")
    assert objects.size("artifacts/2") is None
    assert names(objects, "", 9) == ["0", "1", "3"]
