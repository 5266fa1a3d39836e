"""Keeps what is in a local cloud while it is down: the rows of its table and the objects of its bucket, in a folder.

    python -m penstock.local.keeping save|restore FOLDER

It is a process of its own for the same reason as the deployer. Messages are not kept: they only repeat what rows make
due, and the first sweeps send them anew. Flows are started again from the rows of their jobs: a step that has its lease
already answers at once.
"""

from __future__ import annotations

import base64
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from penstock.aws import dynamodb
from penstock.aws.stepfunctions import StepFlows
from penstock.deploy.account import Account
from penstock.deploy.assembly import DeployError
from penstock.deploy.changes import outputs
from penstock.deploy.options import STACK
from penstock.domain.jobs.jobs import Job, State
from penstock.usecases.jobs import flow

ROWS, OBJECTS, BYTES = "rows.jsonl", "objects.jsonl", "bytes"
"""What a folder has: a row a line, an object a line, and the bytes of each object in a file."""

BATCH = 25
"""How many items one request writes. Source: the DynamoDB API reference, BatchWriteItem."""


def main() -> None:
    """Save or restore, and print how much. Exits with 1 and the reason on failure."""
    does, folder = sys.argv[1], Path(sys.argv[2])
    try:
        counted = (save if does == "save" else restore)(Account(), folder)
    except (DeployError, BotoCoreError, ClientError, OSError, ValueError) as error:
        sys.exit(f"what is in the local cloud cannot be {'kept' if does == 'save' else 'restored'}: {error}")
    print(json.dumps(counted))


def save(account: Account, folder: Path) -> dict[str, int]:
    """Write everything into a folder, and say how much. What was there is replaced only when all of it is written."""
    draft = folder.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    (draft / BYTES).mkdir()
    made = outputs(account.client("cloudformation"), STACK)
    counted = {
        "rows": _write(draft / ROWS, _rows(account, made["TableName"])),
        "objects": _write(draft / OBJECTS, _objects(account, made["BucketName"], draft / BYTES)),
    }
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return counted


def restore(account: Account, folder: Path) -> dict[str, int]:
    """Put everything from a folder into a cloud that was just deployed, and say how much."""
    made, counted = outputs(account.client("cloudformation"), STACK), {"rows": 0, "objects": 0}
    store, batch, jobs = account.client("dynamodb"), [], []
    for row in map(_decoded, _read(folder / ROWS)):
        batch.append({"PutRequest": {"Item": row}})
        jobs += _with_flow(row)
        counted["rows"] += 1
        if len(batch) == BATCH:
            batch = _put(store, made["TableName"], batch)
    while batch:
        batch = _put(store, made["TableName"], batch)
    s3 = account.client("s3")
    for number, each in enumerate(_read(folder / OBJECTS)):
        with (folder / BYTES / str(number)).open("rb") as body:
            s3.put_object(Bucket=made["BucketName"], Body=body, **each)
        counted["objects"] += 1
    flows = StepFlows(account.client("stepfunctions"), made["FlowArn"])
    for job in jobs:
        flows.start(job.id, job.attempt, flow.steps(job.request.needs))
    return counted


def _with_flow(item: Mapping[str, Mapping[str, Any]]) -> list[Job]:
    """The job of an item, if its attempt has a flow."""
    if item["kind"]["S"] != Job.kind:
        return []
    body = item["body"]["S"] if "body" in item else dynamodb.unpack(item["packed"]["B"])
    job = dynamodb.load(Job.kind, body, int(item["version"]["N"]))
    return [job] if isinstance(job, Job) and job.state is State.ACQUIRING else []


def _put(store: Any, table: str, batch: list[Any]) -> list[Any]:
    """Write some items. Returns those that were not written."""
    return list(store.batch_write_item(RequestItems={table: batch})["UnprocessedItems"].get(table, []))


def _rows(account: Account, table: str) -> Iterator[Mapping[str, Any]]:
    pages = account.client("dynamodb").get_paginator("scan").paginate(TableName=table, ConsistentRead=True)
    for page in pages:
        yield from map(_encoded, page["Items"])


def _objects(account: Account, bucket: str, folder: Path) -> Iterator[Mapping[str, Any]]:
    s3, number = account.client("s3"), 0
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for each in page.get("Contents", ()):
            found = s3.get_object(Bucket=bucket, Key=each["Key"])
            with (folder / str(number)).open("wb") as file:
                shutil.copyfileobj(found["Body"], file)
            number += 1
            yield {"Key": each["Key"], "ContentType": found["ContentType"], "Metadata": found["Metadata"]}


def _encoded(item: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """An item of the table as JSON: binary values in base64."""
    return {
        name: {kind: base64.b64encode(value).decode() if kind == "B" else value for kind, value in each.items()}
        for name, each in item.items()
    }


def _decoded(item: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {kind: base64.b64decode(value) if kind == "B" else value for kind, value in each.items()}
        for name, each in item.items()
    }


def _write(path: Path, found: Iterator[Mapping[str, Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8") as file:
        for each in found:
            file.write(json.dumps(each) + "\n")
            count += 1
    return count


def _read(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


if __name__ == "__main__":
    main()
