"""The AWS list prices of what the meter counted: US dollars, us-east-1, without the free tier.

Sources, read in 2026: the public pricing pages of each service, named at each price. Not counted: storage, log
ingestion, and what workers themselves cost. Function time is as measured here, on this machine's cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MILLION = 1_000_000

TRANSITION = 25 / MILLION  # aws.amazon.com/step-functions/pricing, standard workflows
HTTP_REQUEST = 1.00 / MILLION  # aws.amazon.com/api-gateway/pricing, HTTP APIs, first 300 million
CALL = 0.20 / MILLION  # aws.amazon.com/lambda/pricing
MEGABYTE_SECOND = 0.0000133334 / 1024  # aws.amazon.com/lambda/pricing, arm64
WRITE_UNIT = 0.625 / MILLION  # aws.amazon.com/dynamodb/pricing/on-demand
READ_UNIT = 0.125 / MILLION  # aws.amazon.com/dynamodb/pricing/on-demand
QUEUE_REQUEST = 0.40 / MILLION  # aws.amazon.com/sqs/pricing, standard queues
FIFO_REQUEST = 0.50 / MILLION  # aws.amazon.com/sqs/pricing, FIFO queues
S3_WRITE = 5 / MILLION  # aws.amazon.com/s3/pricing, PUT, COPY, POST, LIST
S3_READ = 0.4 / MILLION  # aws.amazon.com/s3/pricing, GET and all other requests
SECRET_READ = 5 / MILLION  # aws.amazon.com/secrets-manager/pricing
KEY_REQUEST = 3 / MILLION  # aws.amazon.com/kms/pricing, symmetric keys and RSA keys of 2,048 bits
SIGNATURE = 15 / MILLION  # aws.amazon.com/kms/pricing, elliptic curves; RSA keys of 2,048 bits cost less

HTTP_FUNCTIONS = ("api", "agent_api")
S3_WRITES = ("PutObject", "ListBucket", "CreateBucket", "AbortMultipartUpload", "ListMultipartUploadParts")
S3_FREE = ("DeleteObject",)

FIFO = "sqs.fifo:"
"""What the meter calls the operations on FIFO queues, in place of sqs:."""


@dataclass(frozen=True)
class Line:
    """One line of a bill."""

    service: str
    amount: float
    unit: str
    dollars: float


def bill(reading: Mapping[str, Mapping[str, Any]]) -> list[Line]:
    """The lines of a bill for a meter's reading, those with nothing on them left out."""
    calls = reading.get("calls", {})
    requests = sum(count for name, count in calls.items() if name.partition("-")[2] in HTTP_FUNCTIONS)
    megabyte_seconds = sum(reading.get("megabyte seconds", {}).values())
    units = reading.get("dynamodb units", {})
    operations = reading.get("operations", {})
    amounts = [
        ("Step Functions", "transitions", sum(reading.get("transitions", {}).values()), TRANSITION),
        ("API Gateway", "requests", requests, HTTP_REQUEST),
        ("Lambda", "calls", sum(calls.values()), CALL),
        ("Lambda", "MB-seconds", megabyte_seconds, MEGABYTE_SECOND),
        ("DynamoDB", "write units", units.get("write", 0), WRITE_UNIT),
        ("DynamoDB", "read units", units.get("read", 0), READ_UNIT),
        ("SQS", "requests", _count(operations, "sqs:"), QUEUE_REQUEST),
        ("SQS", "FIFO requests", _count(operations, FIFO), FIFO_REQUEST),
        ("S3", "writes", _count(operations, "s3:", S3_WRITES), S3_WRITE),
        ("S3", "reads", _count(operations, "s3:") - _count(operations, "s3:", (*S3_WRITES, *S3_FREE)), S3_READ),
        ("Secrets Manager", "reads", _count(operations, "secretsmanager:"), SECRET_READ),
        ("KMS", "requests", _count(operations, "kms:") - _count(operations, "kms:", ("Sign",)), KEY_REQUEST),
        ("KMS", "signatures", _count(operations, "kms:", ("Sign",)), SIGNATURE),
    ]
    return [Line(service, amount, unit, amount * price) for service, unit, amount, price in amounts if amount]


def _count(operations: Mapping[str, float], service: str, names: tuple[str, ...] | None = None) -> float:
    return sum(
        count
        for action, count in operations.items()
        if action.startswith(service) and (names is None or action.removeprefix(service) in names)
    )


def text(lines: list[Line]) -> str:
    """A bill as plain lines."""
    rows = [f"  {each.service:16}{each.amount:>10,.0f} {each.unit:13}${each.dollars:.6f}" for each in lines]
    total = sum(each.dollars for each in lines)
    return "\n".join([*rows, f"  {'at AWS list prices':40}${total:.6f}"])
