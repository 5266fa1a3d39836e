"""What the functions find around them: the stack's table, queues, bucket and flow, and the system plugged into them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from infra.sizes import GITHUB_SIZES, SIZES
from penstock import agentfile, bootstrap
from penstock.aws import dynamodb
from penstock.domain.units import quarantine
from penstock.domain.units.units import CleanProof, Unit, UnitState, unit_key
from penstock.drivers import Registry
from penstock.ports import NotYet, Order, Ready
from penstock.system import System
from penstock.testing.twin import ManualClock
from tests.crash import emulator
from tests.crash.hub import SECRET, Hub

ROOT = Path(__file__).parents[2]
REGION = "us-east-1"
QUEUES = ("schedule", "serve", "factory", "well", "sweep", "github", "settle")
"""The queues of the stack, and one in place of the rule that calls `settle` when a flow ended badly."""

CONSUMERS = {"github": "github_work", "serve": "schedule"}
"""Which function takes from a queue, where it is not called as the queue is."""

SECRETS = {"signing": "k" * 64, "webhook": SECRET}


def must(is_so: bool, why: str) -> None:
    """Fail the test from inside a driver, where an AssertionError would be a failure of the driver."""
    if not is_so:
        pytest.fail(why)


class CheckedDriver:
    """A factory or well whose units are made and cleaned by hand, and which knows what must never be."""

    def __init__(self) -> None:
        self.made: dict[str, Order] = {}
        self.slow = 0
        self.lasting = 0  # seconds for which what is told of a unit is good; 0 for ever
        self.asked: Counter[str] = Counter()
        self.site: Site | None = None
        self.soiled: dict[str, int] = {}

    def create(self, order: Order) -> Ready | NotYet:
        """Make a unit. Nothing else may be in its slot, and no other worker be there for its job. [SLOT-1] [JOB-2]

        One that is there already has its next lease, and must have been cleaned since its last; or its first, and was
        made ahead of need. [UNIT-2]
        """
        assert self.site is not None
        self.asked[order.id] += 1
        if order.id in self.made:
            mine = self.site.unit(order.id)
            if mine.lease.leases:
                is_clean = self.soiled.setdefault(order.id, mine.lease.fence) == mine.lease.fence
                must(is_clean, f"UNIT-2: {order.id} is not clean")
            return self._ready(order)
        if self.slow:
            self.slow -= 1
            return NotYet(5, "it takes a while")
        mine = self.site.unit(order.id)
        for other in map(self.site.unit, self.made):
            is_elsewhere = (other.lease.pool, other.lease.slot) != (mine.lease.pool, mine.lease.slot)
            must(is_elsewhere, f"two units in slot {mine.lease.slot}")
            is_apart = other.state is UnitState.QUARANTINED and quarantine.may_continue(other)
            is_same = mine.lease.job != "" and (other.lease.job, other.lease.order) == (
                mine.lease.job,
                mine.lease.order,
            )
            must(is_apart or not is_same, f"two units of one need of job {mine.lease.job}")
        self.made[order.id] = order
        if mine.lease.leases:
            self.soiled[order.id] = mine.lease.fence
        return self._ready(order)

    def clean(self, unit: str, now: datetime) -> CleanProof | NotYet:
        """Make a unit as new. Nobody may have it by then. [UNIT-2]"""
        assert self.site is not None
        state = self.site.unit(unit).state
        must(state in (UnitState.CLEANING, UnitState.DIRTY, UnitState.GONE), f"UNIT-2: {unit} is cleaned while {state}")
        if self.slow:
            self.slow -= 1
            return NotYet(5, "it takes a while")
        self.soiled.pop(unit, None)
        return CleanProof(by="hand", time=now, checked=unit)

    def destroy(self, unit: str, now: datetime) -> CleanProof | NotYet:
        if self.slow:
            self.slow -= 1
            return NotYet(5, "it takes a while")
        self.made.pop(unit, None)
        return CleanProof(by="hand", time=now, checked=unit)

    def list(self) -> Iterable[str]:
        return list(self.made)

    def _ready(self, order: Order) -> Ready:
        assert self.site is not None
        expires = self.site.world.now() + timedelta(seconds=self.lasting) if self.lasting else None
        return Ready({"name": order.slot}, expires=expires)


class Hands(Registry):
    """The real drivers, and the factory and the well `hand`."""

    def __init__(self) -> None:
        super().__init__({})
        self.hands = {"factory": CheckedDriver(), "well": CheckedDriver()}

    def factory(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Any:
        return self.hands["factory"] if driver == "hand" else super().factory(driver, settings, name)

    def well(self, driver: str, settings: Mapping[str, Any], name: str = "") -> Any:
        return self.hands["well"] if driver == "hand" else super().well(driver, settings, name)

    def reusable(self, kind: str, driver: str) -> bool:
        return driver == "hand" or super().reusable(kind, driver)

    def complaints(self, kind: str, driver: str, settings: Mapping[str, Any]) -> Sequence[str]:
        return [] if driver == "hand" else super().complaints(kind, driver, settings)

    def quarantines(self, kind: str, driver: str) -> bool:
        return driver == "hand" or super().quarantines(kind, driver)

    def objections(self, kind: str, driver: str, options: Mapping[str, Any], *told: Any) -> Sequence[str]:
        return [] if driver == "hand" else super().objections(kind, driver, options, *told)


class Site:
    """The emulated account, and the System that the handlers get from `bootstrap.aws`."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.world = ManualClock()
        self.wire, self.flows = emulator.install(patch, self.world)
        _environment(patch)
        dynamodb.model.cache_clear()  # whose connection goes where it went first: maybe to another emulator
        client: Any = boto3.client  # the stubs know services by literal names only
        self.clients = {name: client(name) for name in ("dynamodb", "sqs", "stepfunctions", "s3", "events")}
        self.urls = {name: self._queue(name) for name in QUEUES}
        self.machine = self._flow()
        patch.setenv("FLOW", self.machine)
        for name in QUEUES:
            patch.setenv(f"{name.upper()}_QUEUE", self.urls[name])
        self._table()
        self.clients["s3"].create_bucket(Bucket="outputs")
        for name in ("METADATA_KEY", "GITHUB_TOKENS"):
            patch.setenv(name, boto3.client("kms").create_key()["KeyMetadata"]["KeyId"])
        for name, secret in SECRETS.items():
            boto3.client("secretsmanager").create_secret(Name=name, SecretString=secret)
        self.hub = Hub(self.world)
        self.drivers = Hands()
        for hand in self.drivers.hands.values():
            hand.site = self
        self._make: Callable[[], System] = bootstrap.aws.__wrapped__
        self.on = self.plugged()
        patch.setattr(bootstrap, "aws", lambda: self.on)

    def close(self) -> None:
        """Leave room for another site in the same emulated account."""
        self.flows.forget()
        self.clients["dynamodb"].delete_table(TableName="state")
        for name in SECRETS:
            boto3.client("secretsmanager").delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)

    def plugged(self) -> System:
        """A new system of the real adapters, with this world and these drivers."""
        on = replace(self._make(), world=self.world, drivers=self.drivers)
        return replace(on, forge=self.hub.forge(self.urls["github"], bootstrap._webhook_secret))

    def unit(self, name: str) -> Unit:
        """A unit's row, read by the test itself."""
        with self.unseen():
            found = self.on.store.get(unit_key(name), Unit)
        assert found is not None, f"{name} was made, and no row says so"
        return found

    def unseen(self) -> _Unseen:
        """Requests that are the test's own: they are no part of what is tried."""
        return _Unseen(self.wire)

    def rows(self) -> list[dict[str, Any]]:
        """All items of the table."""
        pages = self.clients["dynamodb"].get_paginator("scan").paginate(TableName="state")
        return [item for page in pages for item in page["Items"]]

    def restore(self, rows: Sequence[dict[str, Any]]) -> None:
        """Make the table what it was, and empty queues, flows and hands."""
        before = {_key(item): item for item in rows}
        now = {_key(item): item for item in self.rows()}
        asks: list[dict[str, Any]] = [{"DeleteRequest": {"Key": _named(key)}} for key in now if key not in before]
        asks += [{"PutRequest": {"Item": item}} for key, item in before.items() if now.get(key) != item]
        for some in _chunks(asks, 25):
            self.clients["dynamodb"].batch_write_item(RequestItems={"state": some})
        self.flows.forget()
        for url in self.urls.values():
            self.clients["sqs"].purge_queue(QueueUrl=url)
        for each in (bootstrap._signing_key, bootstrap._webhook_secret):
            each.cache_clear()  # each function reads it once, and here there are no others
        self.hub.reset()
        for hand in self.drivers.hands.values():
            hand.made.clear()
            hand.soiled.clear()
            hand.asked.clear()
            hand.slow = hand.lasting = 0

    def _queue(self, name: str) -> str:
        timeout = {**SIZES, **GITHUB_SIZES}[CONSUMERS.get(name, name)].timeout
        attributes = {"VisibilityTimeout": f"{timeout.total_seconds():.0f}"}
        if name == "serve":
            name, attributes = f"{name}.fifo", {**attributes, "FifoQueue": "true"}
        return str(self.clients["sqs"].create_queue(QueueName=name, Attributes=attributes)["QueueUrl"])

    def _flow(self) -> str:
        """The flow as it is deployed, and the rule that tells when one ended badly."""
        text = (ROOT / "functions" / "attempt.asl.json").read_text()
        arn = f"arn:aws:lambda:{REGION}:000000000000:function:settle"
        text = text.replace("${schedule_queue_url}", self.urls["schedule"]).replace("${settle_arn}", arn)
        made = self.clients["stepfunctions"].create_state_machine(
            name="attempt", definition=text, roleArn="arn:aws:iam::000000000000:role/flow"
        )
        pattern = {"source": ["aws.states"], "detail": {"status": ["FAILED", "TIMED_OUT", "ABORTED"]}}
        self.clients["events"].put_rule(Name="ended", EventPattern=json.dumps(pattern))
        queue = f"arn:aws:sqs:{REGION}:000000000000:settle"
        self.clients["events"].put_targets(Rule="ended", Targets=[{"Id": "settle", "Arn": queue}])
        return str(made["stateMachineArn"])

    def _table(self) -> None:
        index = [
            {"IndexName": name, "KeySchema": _schema(*keys), "Projection": {"ProjectionType": "KEYS_ONLY"}}
            for name, keys in {"due": ("due_shard", "due"), "listing": ("list_key", "list_sort")}.items()
        ]
        names = ("pk", "sk", "due_shard", "due", "list_key", "list_sort")
        self.clients["dynamodb"].create_table(
            TableName="state",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=_schema("pk", "sk"),
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
            GlobalSecondaryIndexes=index,
        )


class _Unseen:
    """While this is open, requests go straight to the emulator."""

    def __init__(self, wire: emulator.Wire) -> None:
        self._wire, self._through = wire, wire.through

    def __enter__(self) -> None:
        self._through, self._wire.through = self._wire.through, self._wire.answer

    def __exit__(self, *_: object) -> None:
        self._wire.through = self._through


def _environment(patch: pytest.MonkeyPatch) -> None:
    """A function's environment, and nothing of this machine's AWS settings."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        patch.delenv(name, raising=False)
    given = {
        "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_ENDPOINT_URL": "http://localhost", "TABLE": "state", "BUCKET": "outputs", "SIGNING_SECRET": "signing",
        "GITHUB_SECRET": "webhook", "AGENT_BUCKET": "assets", "AGENT_FILE": f"{agentfile.digest()}.pyz",
        "PUBLIC_URL": "http://localhost/", "POWERTOOLS_SERVICE_NAME": "penstock", "LOG_LEVEL": "CRITICAL",
    }  # fmt: skip
    for name, value in given.items():
        patch.setenv(name, value)


def _schema(first: str, second: str) -> list[dict[str, str]]:
    return [{"AttributeName": first, "KeyType": "HASH"}, {"AttributeName": second, "KeyType": "RANGE"}]


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


def _named(key: tuple[str, str]) -> dict[str, Any]:
    return {"pk": {"S": key[0]}, "sk": {"S": key[1]}}


def _chunks(items: list[Any], size: int) -> Iterator[list[Any]]:
    return (items[at : at + size] for at in range(0, len(items), size))
