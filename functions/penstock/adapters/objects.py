"""Objects in S3. Whoever sends or fetches gets a URL that says what it is good for; only logs pass through us."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.ports import Grant, Stored

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

UPLOAD_SECONDS = 3600
NO_UPLOAD = "NoSuchUpload"
NOTHING = ("404", "InvalidRange", "NoSuchKey", "NotFound")
"""What S3 says of an object that is not there, or not as far."""


class S3Objects:
    """Objects in one bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def upload(self, name: str, size: int, sha256: str) -> Grant:
        """A presigned PUT for exactly these bytes: their digest is part of what is signed."""
        checksum = base64.b64encode(bytes.fromhex(sha256)).decode()
        given = {"Bucket": self._bucket, "Key": name, "ContentLength": size, "ChecksumSHA256": checksum}
        url = self._client.generate_presigned_url("put_object", Params=given, ExpiresIn=UPLOAD_SECONDS)
        return Grant("PUT", url, {"x-amz-checksum-sha256": checksum, "content-length": str(size)})

    def download(self, name: str, seconds: int, filename: str) -> Grant:
        """A presigned GET that names the file."""
        shown = "".join(char if char.isalnum() or char in "._-" else "_" for char in filename) or "output"
        given = {
            "Bucket": self._bucket,
            "Key": name,
            "ResponseContentDisposition": f'attachment; filename="{shown}"',
        }
        return Grant("GET", self._client.generate_presigned_url("get_object", Params=given, ExpiresIn=seconds))

    def size(self, name: str) -> int | None:
        """What HEAD says; None for 404."""
        try:
            return self._client.head_object(Bucket=self._bucket, Key=name)["ContentLength"]
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in NOTHING:
                return None
            raise

    def store(self, name: str, content: bytes) -> None:
        """PUT, with the digest that S3 compares what arrives with."""
        self._client.put_object(Bucket=self._bucket, Key=name, Body=content, ChecksumSHA256=_checksum(content))

    def begin(self, name: str) -> str:
        """CreateMultipartUpload. A rule of the bucket aborts those that are never completed."""
        return self._client.create_multipart_upload(Bucket=self._bucket, Key=name)["UploadId"]

    def part(self, name: str, upload: str, number: int, content: bytes) -> str | None:
        """UploadPart; None for NoSuchUpload."""
        try:
            answer = self._client.upload_part(
                Bucket=self._bucket, Key=name, UploadId=upload, PartNumber=number, Body=content,
                ContentMD5=base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode(),
            )  # fmt: skip
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] == NO_UPLOAD:
                return None
            raise
        return answer["ETag"]

    def complete(self, name: str, upload: str, tags: Sequence[str]) -> None:
        """CompleteMultipartUpload; fine for NoSuchUpload."""
        parts: list[CompletedPartTypeDef] = [
            {"ETag": tag, "PartNumber": number} for number, tag in enumerate(tags, 1)
        ]  # fmt: skip
        try:
            self._client.complete_multipart_upload(
                Bucket=self._bucket, Key=name, UploadId=upload, MultipartUpload={"Parts": parts}
            )
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != NO_UPLOAD:
                raise

    def read(self, name: str, start: int, size: int) -> bytes:
        """GET of a range."""
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=name, Range=f"bytes={start}-{start + size - 1}")
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in NOTHING:
                return b""
            raise
        return found["Body"].read()

    def delete(self, name: str) -> None:
        """Delete an object."""
        self._client.delete_object(Bucket=self._bucket, Key=name)

    def list(self, prefix: str, after: str, limit: int) -> Sequence[Stored]:
        """Pages of ListObjectsV2, until there are enough or no more: a page may be shorter than was asked for."""
        found: list[Stored] = []
        while len(found) < limit:
            last = found[-1].name if found else after
            page = self._client.list_objects_v2(
                Bucket=self._bucket, Prefix=prefix, StartAfter=last, MaxKeys=limit - len(found)
            )
            found += [Stored(each["Key"], each["Size"], each["LastModified"]) for each in page.get("Contents", ())]
            if not page["IsTruncated"]:
                return found
        return found


def _checksum(content: bytes) -> str:
    return base64.b64encode(hashlib.sha256(content).digest()).decode()
