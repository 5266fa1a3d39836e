"""A factory at the fake, and an order. What the core keeps between two calls, `Notes` keeps here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.domain.units.units import CleanProof
from penstock.drivers import MAKER
from penstock.drivers.factories.aws.tags import SITE
from penstock.drivers.factories.fargate.factory import FargateFactory
from penstock.kernel import rows
from penstock.kernel.errors import DriverError
from penstock.ports import NotYet, Order, Ready, UnitContext
from tests.fargate.fake import Ecs, Made

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORKER, OTHER, *MORE = (f"w-{rows.ulid(NOW, bytes([*bytes(9), number]))}" for number in range(9))
HERE = "Penstock.eu-west-1"
KEY = "k" * 64
IMAGE = f"registry.example.com/ci/python@sha256:{'ab' * 32}"
OWN = f"ghcr.io/acme/rust@sha256:{'cd' * 32}"
SETTINGS: dict[str, Any] = {
    "region": "eu-west-1",
    "cluster": "jobs",
    "image": IMAGE,
    "images": ["ghcr.io/acme/*"],
    "subnets": [{"id": "subnet-a", "zone": "eu-west-1a"}, {"id": "subnet-b", "zone": "eu-west-1b"}],
}
FULL: dict[str, Any] = {
    "region": "us-gov-east-1",
    "cluster": "arn:aws-us-gov:ecs:us-gov-east-1:123456789012:cluster/jobs",
    "image": IMAGE,
    "images": ["ghcr.io/acme/*"],
    "subnets": ["subnet-1", {"id": "subnet-2", "zone": "us-gov-east-1b"}],
    "security_groups": ["sg-1"],
    "public_ip": True,
    "cpu": 0.25,
    "memory": 512,
    "storage": 200,
    "arch": "arm64",
    "market": "spot-first",
    "price": 0.05,
    "spot_price": 0.015,
    "execution_role": "arn:aws-us-gov:iam::123456789012:role/pull",
    "log_group": "/penstock/workers",
    "tags": {"team": "tools"},
    "python": "/usr/bin/python3.11",
}


def factory(ecs: Ecs, name: str = "tasks", site: str = HERE, **more: Any) -> FargateFactory:
    """A driver that shares nothing with others but ECS."""
    return FargateFactory({**SETTINGS, **more}, {SITE: site, MAKER: name}, ecs.at)


def order(worker: str = WORKER, **more: Any) -> Order:
    return Order(worker, "linux", "1", url="https://penstock.example", key=KEY, **more)


@dataclass
class Desk:
    """A factory as the core calls it: with the notes that it made in its last call for a worker."""

    ecs: Ecs
    more: Mapping[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def at(self, worker: str) -> FargateFactory:
        known = json.loads(json.dumps(self.notes.get(worker, {})))
        return factory(self.ecs, **self.more).with_context(UnitContext("1", 1, known))

    def create(self, worker: str = WORKER, **more: Any) -> Ready | NotYet:
        try:
            done = self.at(worker).create(order(worker, **more))
        except DriverError as error:
            self._note(worker, error.notes)
            raise
        self._note(worker, done.notes)
        return done

    def destroy(self, worker: str = WORKER) -> CleanProof | NotYet:
        done = self.at(worker).destroy(worker, NOW + timedelta(hours=1))
        self._note(worker, getattr(done, "notes", None))
        return done

    def _note(self, worker: str, notes: Mapping[str, Any] | None) -> None:
        if notes is not None:
            self.notes[worker] = notes


def clean(driver: Desk | FargateFactory, worker: str = WORKER) -> CleanProof:
    """Clean until it is clean, long after it was ordered."""
    for _ in range(50):
        done = driver.destroy(worker) if isinstance(driver, Desk) else driver.destroy(worker, NOW + timedelta(hours=1))
        if isinstance(done, CleanProof):
            return done
        assert isinstance(done, NotYet)
    raise AssertionError("it does not get clean")


def only(ecs: Ecs) -> Made:
    """The one task that there is."""
    (made,) = ecs.tasks.values()
    return made


def event(made: Made, **detail: Any) -> dict[str, Any]:
    """What EventBridge says of a task."""
    return {
        "version": "0",
        "id": "9bcdac79-b31f-4d3d-9410-fbd727c29fab",
        "detail-type": "ECS Task State Change",
        "source": "aws.ecs",
        "account": "123456789012",
        "time": "2026-11-11T21:29:54Z",
        "region": "eu-west-1",
        "resources": [made.arn],
        "detail": {
            "clusterArn": "arn:aws:ecs:eu-west-1:123456789012:cluster/jobs",
            "taskArn": made.arn,
            "taskDefinitionArn": made.definition,
            "startedBy": made.worker,
            "desiredStatus": "STOPPED",
            **detail,
        },
    }
