"""Objects over an emulated S3: what is listed comes in order and in pages, and what is deleted is gone. [ART-2]"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from penstock.aws.s3 import S3Objects


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


def test_a_short_page_of_objects_is_followed_by_the_next(
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


def test_what_is_stored_as_a_whole_is_read_by_ranges(objects: S3Objects) -> None:
    objects.store("artifacts/9", b"0123456789")
    assert objects.size("artifacts/9") == 10
    assert objects.read("artifacts/9", 0, 4) == b"0123"
    assert objects.read("artifacts/9", 8, 4) == b"89"
    assert objects.read("artifacts/9", 10, 4) == b""
    assert objects.read("artifacts/8", 0, 4) == b""


def test_an_object_of_parts_is_there_when_it_is_completed(objects: S3Objects) -> None:
    upload = objects.begin("artifacts/9")
    parts = [b"a" * 5 * 1024**2, b"b"]
    tags = [objects.part("artifacts/9", upload, number, part) or "" for number, part in enumerate(parts, 1)]
    assert [objects.part("artifacts/9", upload, 2, parts[1])] == tags[1:], "the same again is the same"
    assert objects.size("artifacts/9") is None
    for _ in range(2):
        objects.complete("artifacts/9", upload, tags)
    assert objects.read("artifacts/9", len(parts[0]) - 1, 9) == b"ab"


def test_an_upload_that_is_no_more_is_told(objects: S3Objects, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten(**_: object) -> None:
        raise client.exceptions.NoSuchUpload({"Error": {"Code": "NoSuchUpload"}}, "UploadPart")

    monkeypatch.setattr(client, "upload_part", forgotten)
    monkeypatch.setattr(client, "complete_multipart_upload", forgotten)
    assert objects.part("artifacts/9", "u", 1, b"late") is None
    objects.complete("artifacts/9", "u", ["t"])


def test_a_store_that_refuses_is_an_error(client: Any) -> None:
    nowhere = S3Objects(client, "none")
    for call in (
        lambda: nowhere.read("artifacts/1", 0, 1), lambda: nowhere.part("artifacts/1", "u", 1, b""),
        lambda: nowhere.complete("artifacts/1", "u", ["t"]), lambda: nowhere.store("artifacts/1", b""),
    ):  # fmt: skip
        with pytest.raises(client.exceptions.ClientError):
            call()
