"""Puts the console's files into their bucket: the code of a function that CloudFormation calls when they change.

It is sent within the template, so it needs what Lambda's Python has, and nothing of ours. A property of the resource
says which files there are, in their order: index.html is the last, so that it never names one that is not there yet.
Files of former versions stay for pages that are open.
"""

from __future__ import annotations

import io
import json
import time
import traceback
import urllib.request
import zipfile
from typing import Any

import boto3
from botocore.exceptions import ClientError

PATIENCE_SECONDS = 120
"""A permission that was just granted is not known everywhere at once."""


def handler(event: dict[str, Any], context: Any) -> None:
    """Do what CloudFormation asks for, and answer it whatever happens: it would else wait for an hour."""
    s3, wanted = boto3.client("s3"), event["ResourceProperties"]
    done = {"Status": "SUCCESS", "PhysicalResourceId": event.get("PhysicalResourceId") or "console"}
    try:
        if event["RequestType"] != "Delete":
            upload(s3, wanted)
        elif wanted["Keep"] == "false":
            remove(s3, wanted["Bucket"])
    except Exception as error:
        traceback.print_exc()
        done.update(Status="FAILED", Reason=f"{error!r}; the log is {context.log_stream_name}")
    answer(event, done)


def upload(s3: Any, wanted: dict[str, Any]) -> None:
    """Put all files of the archive that are named."""
    with zipfile.ZipFile(io.BytesIO(read(s3, wanted["From"]))) as archive:
        for file in wanted["Files"]:
            s3.put_object(Bucket=wanted["Bucket"], Body=archive.read(file["Key"]), **file)


def read(s3: Any, place: dict[str, str]) -> bytes:
    """The archive. Raises ClientError."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return bytes(s3.get_object(**place)["Body"].read())
        except ClientError as error:
            if error.response["Error"]["Code"] != "AccessDenied" or time.monotonic() > until:
                raise
            time.sleep(2)


def remove(s3: Any, bucket: str) -> None:
    """Empty a bucket, which could not be deleted else."""
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for each in page.get("Contents", ()):
            s3.delete_object(Bucket=bucket, Key=each["Key"])


def answer(event: dict[str, Any], done: dict[str, str]) -> None:
    """Tell CloudFormation."""
    about = {key: event[key] for key in ("StackId", "RequestId", "LogicalResourceId")}
    body = json.dumps({**about, **done}).encode()
    ask = urllib.request.Request(event["ResponseURL"], data=body, method="PUT", headers={"content-type": ""})
    urllib.request.urlopen(ask, timeout=30).close()
