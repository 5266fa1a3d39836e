"""ECS on Fargate, as far as a factory sees it: what no emulator does, and what the documentation says ECS does.

It is played behind boto3's own client (tests/played.py). It has client tokens that remember failures too, lists that
lag behind, pages, a task's states and the time that they take, refused registrations, tags that go when a task is
stopped, shortages by market and subnet, vCPU limits, images that are not there, throttling, and crashes on either side
of a call.

Time is a number of seconds that a test moves; every call takes one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.played import Played, Refusal

ACCOUNT = "123456789012"
REGION = "eu-west-1"
START = datetime(2026, 1, 1, tzinfo=UTC)
ZONES = {"subnet-a": "eu-west-1a", "subnet-b": "eu-west-1b"}
FULL = "Capacity is unavailable at this time. Please try again later or in a different availability zone"
AT_ONCE = "Too many concurrent attempts to create a new revision of the specified family."
LIMIT = "You\u2019ve reached the limit on the number of vCPUs you can run concurrently"
INTERRUPTED = "Your Spot Task was interrupted."
HOUR = 3600
MARKETS = {"FARGATE": "on-demand", "FARGATE_SPOT": "spot"}


@dataclass
class Made:
    """A task. Its state follows from the time; `ended` is when ECS began to end it."""

    arn: str
    wanted: dict[str, Any]
    definition: str
    market: str
    zone: str
    launched: int
    tags: dict[str, str]
    ended: int | None = None
    code: str = ""
    why: str = ""

    @property
    def id(self) -> str:
        return self.arn.rpartition("/")[2]

    @property
    def worker(self) -> str:
        return str(self.wanted["startedBy"])


@dataclass
class Ecs(Played):
    """One cluster of one account. What is public may be set and read by tests.

    `registers` is how many seconds a registration takes. Until it is over, another one of the same family is refused.
    """

    service = "ecs"

    lag: int = 0
    boot: int = 2
    dying: int = 3
    registers: int = 1
    page: int = 2
    cluster: str = "jobs"
    tasks: dict[str, Made] = field(default_factory=dict)
    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)
    revisions: Counter[str] = field(default_factory=Counter)
    registered: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, tuple[str, str | dict[str, Any]]] = field(default_factory=dict)
    short: set[tuple[str, str]] = field(default_factory=set)
    vcpus: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    logs: dict[str, list[str]] = field(default_factory=dict)
    other_client: Any = None

    def at(self, service: str, region: str) -> Any:
        """The client of ECS, or of the logs beside it."""
        if service == "ecs":
            return self.client(region)
        self.other_client = self.other_client or Logs(logs=self.logs).client(region)
        return self.other_client

    # The calls, by ECS's names.

    def RunTask(self, params: dict[str, Any]) -> dict[str, Any]:
        self._in_cluster(params)
        body = json.dumps({key: value for key, value in params.items() if key != "clientToken"}, sort_keys=True)
        token = params["clientToken"]
        assert 0 < len(token) <= 64
        assert set(token) <= set(map(chr, range(33, 127)))
        if token in self.tokens:
            was, came = self.tokens[token]
            if was != body:
                raise Refusal("ConflictException", "The client token is already in use with a different request.")
            if isinstance(came, dict):
                return {"tasks": [], "failures": [came]}
            return {"tasks": [self._repeated(self.tasks[came])], "failures": []}
        came = self._run(params)
        self.tokens[token] = body, came if isinstance(came, dict) else came.arn
        return (
            {"tasks": [], "failures": [came]}
            if isinstance(came, dict)
            else {"tasks": [self._told(came, tags=True)], "failures": []}
        )

    def _run(self, params: dict[str, Any]) -> Made | dict[str, Any]:
        family = params["taskDefinition"]
        known = self._active(family)
        if known is None:
            raise Refusal("ClientException", "TaskDefinition is inactive")
        (subnet,) = params["networkConfiguration"]["awsvpcConfiguration"]["subnets"]
        market = self._market(params)
        if subnet not in ZONES:
            raise Refusal("InvalidParameterException", f"The subnet ID '{subnet}' does not exist")
        assert len(json.dumps(params["overrides"])) <= 8192
        if {(market, subnet), (market, "*"), ("*", "*")} & self.short:
            return {"reason": FULL}
        used = sum(self._cpus(each.definition) for each in self.alive() if each.market == market)
        if used + self._cpus(known) > self.vcpus.get(market, 1000):
            return {"reason": LIMIT}
        number = len(self.tasks) + 1
        arn = f"arn:aws:ecs:{REGION}:{ACCOUNT}:task/{self.cluster}/{number:032x}"
        tags = {each["key"]: each["value"] for each in params.get("tags", [])}
        made = Made(arn, params, known, market, ZONES[subnet], self.now, tags)
        self.tasks[arn] = made
        image = self.definitions[known]["containerDefinitions"][0]["image"]
        if image in self.missing:
            made.ended, made.code = self.now + 1, "TaskFailedToStart"
            made.why = f"CannotPullContainerError: {self.missing[image]}"
        return made

    def _market(self, params: Mapping[str, Any]) -> str:
        if "capacityProviderStrategy" not in params:
            return MARKETS[params["launchType"]]
        assert "launchType" not in params
        (strategy,) = params["capacityProviderStrategy"]
        return MARKETS[strategy["capacityProvider"]]

    def _cpus(self, definition: str) -> float:
        return int(self.definitions[definition]["cpu"]) / 1024

    def _repeated(self, each: Made) -> dict[str, Any]:
        """What a repeated call says: of a task that stopped, little."""
        if self.state(each) != "STOPPED":
            return self._told(each, tags=True)
        return {"taskArn": each.arn, "lastStatus": "STOPPED", "desiredStatus": "STOPPED"}

    def StopTask(self, params: dict[str, Any]) -> dict[str, Any]:
        self._in_cluster(params)
        each = self.tasks.get(params["task"])
        if each is None or not self._is_seen(each):
            raise Refusal("InvalidParameterException", "The referenced task was not found.")
        self.end(each.arn, "UserInitiated", params.get("reason", ""))
        return {"task": self._told(each)}

    def DescribeTasks(self, params: dict[str, Any]) -> dict[str, Any]:
        self._in_cluster(params)
        assert 0 < len(params["tasks"]) <= 100
        found = [self.tasks.get(name) or self._named(name) for name in params["tasks"]]
        shown = [each for each in found if each is not None and self._is_seen(each) and not self._is_forgotten(each)]
        missing = [{"arn": str(name), "reason": "MISSING"} for name in params["tasks"][len(shown) :]]
        return {"tasks": [self._told(each) for each in shown], "failures": missing}

    def _named(self, name: str) -> Made | None:
        return next((each for each in self.tasks.values() if each.id == name), None)

    def ListTasks(self, params: dict[str, Any]) -> dict[str, Any]:
        self._in_cluster(params)
        if "startedBy" in params and {"desiredStatus", "family", "serviceName", "launchType"} & set(params):
            raise Refusal("InvalidParameterException", "startedBy must be the only filter")
        wanted = params.get("desiredStatus", "RUNNING")
        seen = [each for each in self.tasks.values() if self._is_seen(each) and not self._is_forgotten(each)]
        found = [each.arn for each in seen if self._wanted(each) == wanted and self._fits(each, params)]
        return self._page("taskArns", found, params)

    def _fits(self, each: Made, params: Mapping[str, Any]) -> bool:
        family = each.definition.rpartition("/")[2].partition(":")[0]
        return params.get("startedBy", each.worker) == each.worker and params.get("family", family) == family

    def _page(self, name: str, found: list[str], params: Mapping[str, Any]) -> dict[str, Any]:
        start = int(params.get("nextToken", 0))
        end = start + min(self.page, params.get("maxResults", 100))
        return {name: found[start:end], **({"nextToken": str(end)} if end < len(found) else {})}

    def RegisterTaskDefinition(self, params: dict[str, Any]) -> dict[str, Any]:
        family = params["family"]
        assert len(family) <= 255
        assert all(letter.isalnum() or letter in "_-" for letter in family)
        if family in self.registered and self.now < self.registered[family] + self.registers:
            raise Refusal("ClientException", AT_ONCE)
        self.registered[family] = self.now
        self.revisions[family] += 1
        arn = f"arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/{family}:{self.revisions[family]}"
        self.definitions[arn] = {**params, "status": "ACTIVE"}
        return {"taskDefinition": {"taskDefinitionArn": arn, "family": family}}

    def DescribeTaskDefinition(self, params: dict[str, Any]) -> dict[str, Any]:
        arn = self._active(params["taskDefinition"])
        if arn is None:
            raise Refusal("ClientException", "Unable to describe task definition.")
        return {"taskDefinition": {"taskDefinitionArn": arn}}

    def DeregisterTaskDefinition(self, params: dict[str, Any]) -> dict[str, Any]:
        self.definitions[params["taskDefinition"]]["status"] = "INACTIVE"
        return {"taskDefinition": {"taskDefinitionArn": params["taskDefinition"]}}

    def ListTaskDefinitionFamilies(self, params: dict[str, Any]) -> dict[str, Any]:
        names = sorted({each["family"] for each in self.definitions.values() if each["status"] == params["status"]})
        return self._page("families", [each for each in names if each.startswith(params["familyPrefix"])], params)

    def ListTaskDefinitions(self, params: dict[str, Any]) -> dict[str, Any]:
        active = [arn for arn, each in self.definitions.items() if each["status"] == "ACTIVE"]
        found = [arn for arn in active if self.definitions[arn]["family"] == params["familyPrefix"]]
        return self._page("taskDefinitionArns", found, params)

    def _active(self, family: str) -> str | None:
        """The newest active revision of a family."""
        found = [
            arn for arn, each in self.definitions.items() if each["family"] == family and each["status"] == "ACTIVE"
        ]
        return found[-1] if found else None

    def _in_cluster(self, params: Mapping[str, Any]) -> None:
        if params["cluster"] != self.cluster:
            raise Refusal("ClusterNotFoundException", "Cluster not found.")

    # What tests ask and do.

    def _is_seen(self, each: Made) -> bool:
        return each.launched + self.lag <= self.now

    def _is_forgotten(self, each: Made) -> bool:
        """ECS shows stopped tasks for at least an hour."""
        return each.ended is not None and self.now >= each.ended + self.dying + HOUR

    def _wanted(self, each: Made) -> str:
        return "STOPPED" if self._has_ended(each) else "RUNNING"

    def _has_ended(self, each: Made) -> bool:
        return each.ended is not None and self.now >= each.ended

    def state(self, each: Made) -> str:
        if each.ended is not None and self._has_ended(each):
            return "STOPPED" if self.now >= each.ended + self.dying else "DEPROVISIONING"
        return "RUNNING" if self.now >= each.launched + self.boot else "PENDING"

    def alive(self) -> Iterator[Made]:
        """Tasks whose container may run: also those that ECS is about to end."""
        return (each for each in self.tasks.values() if self.state(each) != "STOPPED")

    def end(self, arn: str, code: str, why: str) -> None:
        """A task ends, once. Its tags are gone if that was asked for."""
        each = self.tasks[arn]
        if each.ended is None:
            each.ended, each.code, each.why = self.now, code, why
            if code == "UserInitiated":
                each.tags = {}

    def made(self) -> Counter[str]:
        """How many tasks were ever run, by worker."""
        return Counter(each.worker for each in self.tasks.values())

    def tries(self) -> list[str]:
        """The ways that were tried, as market and zone."""
        runs = [params for name, params in self.calls if name == "RunTask"]
        cards = [each["networkConfiguration"]["awsvpcConfiguration"]["subnets"][0] for each in runs]
        return [f"{self._market(params)} {ZONES.get(card, card)}" for params, card in zip(runs, cards, strict=True)]

    def active(self) -> list[str]:
        """The families that have an active definition."""
        return sorted({each["family"] for each in self.definitions.values() if each["status"] == "ACTIVE"})

    def _told(self, each: Made, *, tags: bool = False) -> dict[str, Any]:
        told = {
            "taskArn": each.arn,
            "taskDefinitionArn": each.definition,
            "startedBy": each.worker,
            "desiredStatus": self._wanted(each),
            "lastStatus": self.state(each),
            "availabilityZone": each.zone,
            "launchType": "FARGATE",
            "createdAt": START + timedelta(seconds=each.launched),
        }
        shown = {"tags": [{"key": key, "value": value} for key, value in each.tags.items()]} if tags else {}
        return {**told, **(_ending(each) if self._has_ended(each) else {}), **shown}


def _ending(each: Made) -> dict[str, Any]:
    """What ECS says of a task that it ends. Of one that did not start, its container has the reason, too."""
    reason = each.why if each.code == "TaskFailedToStart" else ""
    return {
        "stopCode": each.code,
        "stoppedReason": each.why,
        "containers": [{"name": "worker", "reason": reason}],
    }


@dataclass
class Logs(Played):
    """The logs of tasks, by the names of their streams."""

    service = "logs"

    logs: dict[str, list[str]] = field(default_factory=dict)

    def GetLogEvents(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["logStreamName"] not in self.logs:
            raise Refusal("ResourceNotFoundException", "The specified log stream does not exist.")
        return {"events": [{"message": each} for each in self.logs[params["logStreamName"]]]}
