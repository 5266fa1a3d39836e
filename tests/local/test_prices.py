"""The bill adds up."""

from __future__ import annotations

from penstock.local import prices

READING = {
    "calls": {"Penstock-api": 600_000, "Penstock-agent_api": 400_000, "Penstock-sweep": 1_000_000},
    "megabyte seconds": {"Penstock-api": 1024 * 1000.0},
    "transitions": {"state": 1000},
    "dynamodb units": {"read": 2_000_000, "write": 1_000_000},
    "operations": {
        "sqs:SendMessage": 1_000_000,
        "sqs.fifo:SendMessage": 1_000,
        "s3:PutObject": 1000,
        "s3:GetObject": 2,
        "s3:DeleteObject": 9,
        "kms:Encrypt": 1000,
        "kms:Decrypt": 2000,
        "kms:Sign": 100,
    },
}


def test_a_bill_has_a_line_for_each_billed_operation() -> None:
    lines = {(each.service, each.unit): (each.amount, round(each.dollars, 6)) for each in prices.bill(READING)}
    assert lines == {
        ("Step Functions", "transitions"): (1000, 0.025),
        ("API Gateway", "requests"): (1_000_000, 1.0),
        ("Lambda", "calls"): (2_000_000, 0.4),
        ("Lambda", "MB-seconds"): (1024 * 1000.0, 0.013333),
        ("DynamoDB", "write units"): (1_000_000, 0.625),
        ("DynamoDB", "read units"): (2_000_000, 0.25),
        ("SQS", "requests"): (1_000_000, 0.4),
        ("SQS", "FIFO requests"): (1_000, 0.0005),
        ("S3", "writes"): (1000, 0.005),
        ("S3", "reads"): (2, 0.000001),
        ("KMS", "requests"): (3000, 0.009),
        ("KMS", "signatures"): (100, 0.0015),
    }


def test_nothing_costs_nothing() -> None:
    assert prices.bill({}) == []
    assert "$0.000000" in prices.text([])


def test_the_total_is_the_sum() -> None:
    lines = prices.bill(READING)
    assert f"${sum(each.dollars for each in lines):.6f}" in prices.text(lines).splitlines()[-1]
