"""The emulator of the local cloud, with nothing on it but the table, which its own model makes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
import httpx

from penstock.aws import dynamodb
from penstock.kernel.rows import Row
from penstock.local import cloud
from penstock.local.state import StateFolder
from tests import raw

TABLE = "state"


@contextmanager
def emulator() -> Iterator[dict[str, str]]:
    """An emulator with an empty table; what a process must have in its environment to reach it."""
    with TemporaryDirectory(prefix="penstock-concurrency-") as folder:
        place = StateFolder(Path(folder) / "state")
        with cloud.listen(None) as listener:
            port = listener.getsockname()[1]
            cloud.start(place, listener, tied=True)
        try:
            cloud.wait_until_healthy(place, f"http://127.0.0.1:{port}")
            env = {name: value for name, value in cloud.environment(place, port).items() if name.startswith("AWS_")}
            with environment(env):
                dynamodb.model.__wrapped__(TABLE, cloud.REGION).create_table(billing_mode="PAY_PER_REQUEST", wait=True)
            yield env
        finally:
            cloud.down(lambda line: None, place)


@contextmanager
def environment(env: Mapping[str, str]) -> Iterator[None]:
    """These variables in this process's environment, for a while."""
    before = dict(os.environ)
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def client(env: Mapping[str, str]) -> Any:
    """A DynamoDB client that is not the store's."""
    return boto3.client(
        "dynamodb",
        endpoint_url=env["AWS_ENDPOINT_URL"],
        region_name=cloud.REGION,
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )


def rows(env: Mapping[str, str]) -> list[Row]:
    """Everything that the table holds, read without the store."""
    pages = client(env).get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
    found = [each for page in pages for each in page["Items"]]
    return list(map(raw.row_of, found))


def meter(env: Mapping[str, str], *, reset: bool = False) -> dict[str, Any]:
    """What the emulator has counted, or an empty reading after a reset."""
    path = "/_penstock/meter/reset" if reset else "/_penstock/meter"
    answer = httpx.request("POST" if reset else "GET", env["AWS_ENDPOINT_URL"] + path, trust_env=False, timeout=30)
    found: dict[str, Any] = answer.raise_for_status().json()
    return found
