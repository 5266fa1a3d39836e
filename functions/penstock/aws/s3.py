"""Objects in S3. Clients upload and download with presigned URLs. Only logs pass through the functions."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.domain.artifacts import volumes
from penstock.domain.artifacts.content import Content
from penstock.domain.artifacts.volumes import Part
from penstock.ports import Grant, Stored

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef, HeadObjectOutputTypeDef


UPLOAD_SECONDS = 3600
NO_UPLOAD = "NoSuchUpload"

NOT_FOUND_CODES = ("404", "InvalidRange", "NoSuchKey", "NotFound")
"""S3's codes for an object that does not exist, or is shorter than the requested range."""


class S3Objects:
    """Objects in one bucket."""

    def __init__(self, client: S3Client, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def upload(self, name: str, size: int, sha256: str) -> Grant:
        """A presigned PUT for exactly these bytes: the signature covers their digest."""
        checksum = _base64(sha256)
        given = {"Bucket": self._bucket, "Key": name, "ContentLength": size, "ChecksumSHA256": checksum}
        url = self._client.generate_presigned_url("put_object", Params=given, ExpiresIn=UPLOAD_SECONDS)
        return Grant("PUT", url, {"x-amz-checksum-sha256": checksum, "content-length": str(size)})

    def parts(self, name: str, wanted: Sequence[Part]) -> Sequence[Grant | None]:
        """Presigned PUTs of parts, each for exactly its bytes; None for parts that S3 has with that digest."""
        upload = self._unfinished(name) or self._begin(name)
        first = wanted[0].number - 1
        page = self._client.list_parts(
            Bucket=self._bucket, Key=name, UploadId=upload, PartNumberMarker=first, MaxParts=len(wanted)
        )
        there = {each["PartNumber"]: each.get("ChecksumSHA256") for each in page.get("Parts", ())}
        return [
            None if there.get(part.number) == _base64(part.sha256) else self._part(name, upload, part)
            for part in wanted
        ]

    def _part(self, name: str, upload: str, part: Part) -> Grant:
        checksum = _base64(part.sha256)
        given = {
            "Bucket": self._bucket, "Key": name, "UploadId": upload, "PartNumber": part.number,
            "ContentLength": part.size, "ChecksumSHA256": checksum,
        }  # fmt: skip
        url = self._client.generate_presigned_url("upload_part", Params=given, ExpiresIn=UPLOAD_SECONDS)
        return Grant("PUT", url, {"x-amz-checksum-sha256": checksum, "content-length": str(part.size)})

    def _begin(self, name: str) -> str:
        return self._client.create_multipart_upload(Bucket=self._bucket, Key=name, ChecksumAlgorithm="SHA256")[
            "UploadId"
        ]

    def _unfinished(self, name: str) -> str | None:
        """The multipart upload of an object. If two were begun at once, every caller chooses the same."""
        return min(self._uploads(name), default=None)

    def _uploads(self, name: str) -> Sequence[str]:
        """The uploads of an object. They are few, because no object's name is the beginning of another's."""
        page = self._client.list_multipart_uploads(Bucket=self._bucket, Prefix=name)
        return [each["UploadId"] for each in page.get("Uploads", ()) if each["Key"] == name]

    def join(self, name: str, count: int, composite: str) -> None:
        """CompleteMultipartUpload, which verifies all digests again. Does nothing if a part is missing."""
        upload = self._unfinished(name)
        sent = self._sent(name, upload) if upload else []
        digests = [base64.b64decode(each["ChecksumSHA256"]).hex() for each in sent]
        if upload and len(sent) == count and volumes.composite(digests) == composite:
            with contextlib.suppress(self._client.exceptions.NoSuchUpload):  # a concurrent call completed it
                self._client.complete_multipart_upload(
                    Bucket=self._bucket, Key=name, UploadId=upload, MultipartUpload={"Parts": sent}
                )
            self.abandon(name)

    def _sent(self, name: str, upload: str) -> list[CompletedPartTypeDef]:
        pages = self._client.get_paginator("list_parts").paginate(Bucket=self._bucket, Key=name, UploadId=upload)
        return [
            {"PartNumber": each["PartNumber"], "ETag": each["ETag"], "ChecksumSHA256": each["ChecksumSHA256"]}
            for page in pages
            for each in page.get("Parts", ())
        ]

    def abandon(self, name: str) -> None:
        """Abort the uploads of an object. A lifecycle rule of the bucket aborts forgotten ones after some days."""
        for upload in self._uploads(name):
            with contextlib.suppress(self._client.exceptions.NoSuchUpload):
                self._client.abort_multipart_upload(Bucket=self._bucket, Key=name, UploadId=upload)

    def download(self, name: str, seconds: int, filename: str) -> Grant:
        """A presigned GET with a file name."""
        shown = "".join(char if char.isalnum() or char in "._-" else "_" for char in filename) or "output"
        given = {
            "Bucket": self._bucket,
            "Key": name,
            "ResponseContentDisposition": f'attachment; filename="{shown}"',
        }
        return Grant("GET", self._client.generate_presigned_url("get_object", Params=given, ExpiresIn=seconds))

    def size(self, name: str) -> int | None:
        """The size from HeadObject; None for 404."""
        found = self._head(name)
        return found["ContentLength"] if found else None

    def content(self, name: str) -> Content | None:
        """The size and the checksum from HeadObject; None for 404. A composite checksum ends with the count of parts.

        An object that was stored without a SHA-256 has neither digest, so it equals nothing that was announced.
        """
        found = self._head(name)
        if found is None:
            return None
        checksum, _, parts = found.get("ChecksumSHA256", "").partition("-")
        digest = base64.b64decode(checksum).hex()
        return Content(found["ContentLength"], "" if parts else digest, digest if parts else "")

    def _head(self, name: str) -> HeadObjectOutputTypeDef | None:
        try:
            return self._client.head_object(Bucket=self._bucket, Key=name, ChecksumMode="ENABLED")
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in NOT_FOUND_CODES:
                return None
            raise

    def store(self, name: str, content: bytes) -> None:
        """PutObject, with a digest that S3 verifies."""
        self._client.put_object(Bucket=self._bucket, Key=name, Body=content, ChecksumSHA256=_checksum(content))

    def begin(self, name: str) -> str:
        """CreateMultipartUpload. A lifecycle rule of the bucket aborts uploads that are never completed."""
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
        sent: list[CompletedPartTypeDef] = [
            {"ETag": tag, "PartNumber": number} for number, tag in enumerate(tags, 1)
        ]  # fmt: skip
        try:
            self._client.complete_multipart_upload(
                Bucket=self._bucket, Key=name, UploadId=upload, MultipartUpload={"Parts": sent}
            )
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != NO_UPLOAD:
                raise

    def read(self, name: str, start: int, size: int) -> bytes:
        """GET of a range."""
        try:
            found = self._client.get_object(Bucket=self._bucket, Key=name, Range=f"bytes={start}-{start + size - 1}")
        except self._client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in NOT_FOUND_CODES:
                return b""
            raise
        return found["Body"].read()

    def delete(self, name: str) -> None:
        """Delete an object."""
        self._client.delete_object(Bucket=self._bucket, Key=name)

    def list(self, prefix: str, after: str, limit: int) -> Sequence[Stored]:
        """ListObjectsV2, page by page up to the limit, because S3 may return shorter pages than requested."""
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


def _base64(digest: str) -> str:
    """A hexadecimal digest in the base64 form that S3 uses."""
    return base64.b64encode(bytes.fromhex(digest)).decode()


def _checksum(content: bytes) -> str:
    return base64.b64encode(hashlib.sha256(content).digest()).decode()
