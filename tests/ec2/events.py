"""Messages that EC2 sends about its instances."""

from __future__ import annotations

from typing import Any

HERE = "eu-west-1"


ID = "i-1234567890abcdef0"


def event(kind: str, **detail: Any) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "7bf73129-1428-4cd3-a780-95db273d1602",
        "detail-type": kind,
        "source": "aws.ec2",
        "account": "123456789012",
        "time": "2026-11-11T21:29:54Z",
        "region": HERE,
        "resources": [f"arn:aws:ec2:{HERE}:123456789012:instance/{ID}"],
        "detail": {"instance-id": ID, **detail},
    }


def ends(instance: str, region: str = HERE) -> dict[str, Any]:
    return {
        **event("EC2 Instance State-change Notification", **{"instance-id": instance, "state": "terminated"}),
        "region": region,
    }
