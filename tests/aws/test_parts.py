"""Objects that are sent in parts: what is there is not sent again, and only what was announced is put together."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from penstock.aws.s3 import S3Objects
from penstock.domain.artifacts import volumes
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.volumes import PART_BYTES, Part
from tests.aws.account import BUCKET, Account


@pytest.fixture
def client(account: Account) -> Any:
    return account.client("s3")


FIRST, LAST = b"a" * PART_BYTES, b"tail"


def part(number: int, data: bytes) -> Part:
    return Part(number, len(data), hashlib.sha256(data).hexdigest())


BOTH = (part(1, FIRST), part(2, LAST))
COMPOSITE = volumes.composite([each.sha256 for each in BOTH])


def send(client: Any, name: str, number: int, data: bytes) -> None:
    """As who was given leave does it, without HTTP."""
    (upload,) = {each["UploadId"] for each in client.list_multipart_uploads(Bucket=BUCKET)["Uploads"]}
    digest = base64.b64encode(hashlib.sha256(data).digest()).decode()
    client.upload_part(Bucket=BUCKET, Key=name, UploadId=upload, PartNumber=number, Body=data, ChecksumSHA256=digest)


def test_parts_that_are_there_are_not_sent_again_and_together_they_are_the_object(client: Any) -> None:
    objects = S3Objects(client, BUCKET)
    first, last = objects.parts("artifacts/big", BOTH)
    assert first
    assert last
    assert "partNumber=2" in last.url
    assert last.headers["content-length"] == "4"
    send(client, "artifacts/big", 2, LAST)
    objects.join("artifacts/big", 2, COMPOSITE)
    assert objects.size("artifacts/big") is None
    assert [given is None for given in objects.parts("artifacts/big", BOTH)] == [False, True]
    assert objects.parts("artifacts/big", BOTH[1:]) == [None]
    assert objects.parts("artifacts/big", [part(2, b"else")]) != [None]
    send(client, "artifacts/big", 1, FIRST)
    for _ in range(2):
        objects.join("artifacts/big", 2, COMPOSITE)
    assert client.get_object(Bucket=BUCKET, Key="artifacts/big")["Body"].read() == FIRST + LAST
    assert objects.content("artifacts/big") == Content(len(FIRST + LAST), "", COMPOSITE)
    assert not client.list_multipart_uploads(Bucket=BUCKET).get("Uploads")


def test_parts_that_are_others_than_was_said_are_not_put_together(client: Any) -> None:
    objects = S3Objects(client, BUCKET)
    objects.parts("artifacts/big", BOTH)
    send(client, "artifacts/big", 1, FIRST)
    send(client, "artifacts/big", 2, b"else")
    objects.join("artifacts/big", 2, COMPOSITE)
    assert objects.size("artifacts/big") is None


def test_an_object_in_one_piece_has_the_digest_of_its_bytes(client: Any) -> None:
    objects = S3Objects(client, BUCKET)
    assert objects.content("artifacts/small") is None
    objects.store("artifacts/small", LAST)
    assert objects.content("artifacts/small") == Content(4, hashlib.sha256(LAST).hexdigest())
    client.put_object(Bucket=BUCKET, Key="artifacts/odd", Body=LAST)
    assert objects.content("artifacts/odd") == Content(4, ""), "it was stored without a SHA-256"


def test_one_of_two_concurrent_uploads_is_used_and_none_is_left(client: Any) -> None:
    objects = S3Objects(client, BUCKET)
    for name in ("artifacts/big", "artifacts/big", "artifacts/bigger"):
        client.create_multipart_upload(Bucket=BUCKET, Key=name, ChecksumAlgorithm="SHA256")
    begun = [objects.parts("artifacts/big", BOTH[:1])[0] for _ in range(3)]
    assert len({given.url.partition("uploadId=")[2].partition("&")[0] for given in begun if given}) == 1
    for _ in range(2):
        objects.abandon("artifacts/big")
    assert [each["Key"] for each in client.list_multipart_uploads(Bucket=BUCKET)["Uploads"]] == ["artifacts/bigger"]
