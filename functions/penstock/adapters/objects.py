"""Objects in S3. Bytes never pass through us: whoever sends or fetches gets a URL that says what it is good for."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.ports import Grant, Stored

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

UPLOAD_SECONDS = 3600


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
            if error.response["Error"]["Code"] in ("404", "NoSuchKey", "NotFound"):
                return None
            raise

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
