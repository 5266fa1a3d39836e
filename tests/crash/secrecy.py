"""Secrets are looked for in all that a run leaves or says: rows, messages, flows, objects, logs, answers. [SEC-1]

All that a handler tells AWS, and is told, goes over one wire: it is kept here, but for what the key service is given to
seal and gives back, and so is what the functions are woken with, answer and log.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from penstock.agent.masking import Mask, resource_secrets
from penstock.api import openapi
from penstock.aws.kms import KmsVault
from penstock.aws.sqs import SqsQueues
from penstock.aws.stepfunctions import StepFlows
from penstock.kernel.errors import Unknown
from penstock.ports import Order, Ready
from penstock.usecases.units import drivers
from penstock.usecases.users import tokens, users
from tests import raw
from tests.crash import emulator, life
from tests.crash.runtime import Runtime
from tests.crash.site import CheckedDriver
from tests.crash.sweep import Sweep
from tests.leaks import forms

PASSWORD = "Tr0ub4dorAnd3Horses"


GRUMBLES = "bad login with "
"""What the well says when it is first asked for a resource, and then the key that it was given."""


def metadata(order: Order) -> dict[str, Any]:
    """What the well says of a resource: also the secret that it was given to make passwords of."""
    return {"name": order.slot, "password": f"{PASSWORD}-{order.id[-4:]}", "deep": {"key": order.key}}


class Kept:
    """All that was said, by where."""

    def __init__(self, *, grumbles: bool) -> None:
        self.grumbles = grumbles
        self.said: list[tuple[str, str]] = []
        self.told: list[Mapping[str, Any]] = []
        self.keys: set[str] = set()

    def create(self, hand: CheckedDriver, order: Order) -> Any:
        if self.grumbles and not order.is_worker and order.id not in hand.asked:
            hand.asked[order.id] = 0
            self.keys.add(order.key)
            raise Unknown(GRUMBLES + order.key)
        done = CREATE(hand, order)
        if isinstance(done, Ready) and not order.is_worker:
            self.keys |= {order.key, f"{PASSWORD}-{order.id[-4:]}"}
            return Ready(metadata(order), public=["name"], expires=done.expires)
        self.keys.add(order.key)
        return done

    def answer(self, wire: emulator.Wire, request: Any) -> Any:
        found = ANSWER(wire, request)
        target = request.headers.get("X-Amz-Target") or request.url
        target = target.decode() if isinstance(target, bytes) else str(target)
        if "TrentService" not in target:
            body = request.body.read() if hasattr(request.body, "read") else request.body or b""
            sent = body if isinstance(body, str) else bytes(body).decode("utf-8", "replace")
            back = found.content.decode("utf-8", "replace")
            self.said += [(f"to {target}", raw.unpacked(sent)), (f"from {target}", raw.unpacked(back))]
        return found

    def call(self, runtime: Runtime, name: str, event: dict[str, Any], who: object) -> Any:
        found = CALL(runtime, name, event, who)
        path = str(event.get("rawPath"))
        is_hello, is_store = path == "/v1/agent/hello", "/store/" in path
        if is_store:
            asked = json.loads(event.get("body") or "{}")
            self.keys |= {asked["value"]} if asked.get("secret") else set()
        elif is_hello:
            body = json.loads(found["body"])
            self.told += [entry for entry in body.get("resources", {}).values()]
            self.keys |= {json.loads(event["body"])["token"]} - {""}
        else:
            self.said.append((f"answer of {name}", json.dumps(found)))
        headers = event.get("headers") or {}
        shown = {**event, "headers": {key: headers[key] for key in headers if key != "authorization"}}
        self.said.append((f"event of {name}", "" if is_hello or is_store else json.dumps(shown, default=str)))
        return found


CREATE, ANSWER, CALL = CheckedDriver.create, emulator.Wire.answer, Runtime.call


class Log(logging.Handler):
    """Keeps what is logged, whatever the level."""

    def __init__(self, kept: Kept) -> None:
        super().__init__(logging.DEBUG)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.said.append(("log", f"{record.getMessage()} {record.__dict__}"))


def listen(patch: pytest.MonkeyPatch, *, grumbles: bool) -> Kept:
    """Keep all that is said from here on. Agents say their job's secret, hidden as a real one hides it."""
    found = Kept(grumbles=grumbles)
    patch.setattr(CheckedDriver, "create", lambda hand, order: found.create(hand, order))
    patch.setattr(emulator.Wire, "answer", lambda wire, request: found.answer(wire, request))
    patch.setattr(Runtime, "call", lambda runtime, *told: found.call(runtime, *told))
    mask = Mask(resource_secrets({"x": {"metadata": {"password": PASSWORD}}}))
    lines = (f"the password is {PASSWORD}", base64.b64encode(PASSWORD.encode()).decode(), json.dumps([PASSWORD]))
    patch.setattr(life, "LINES", tuple(map(mask.text, lines)))
    return found


@contextmanager
def logged(kept: Kept) -> Iterator[None]:
    """All that is logged. Not before the functions are there: theirs must be the first handler."""
    handler, logger = Log(kept), logging.getLogger("penstock")
    level, disabled = logger.level, logging.root.manager.disable
    logger.setLevel(logging.DEBUG)
    logging.disable(logging.NOTSET)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logging.disable(disabled)


@dataclass(frozen=True)
class Report:
    """What a run said where, how many secrets agents were told, and where one was found.

    `grumbles` is where it was told what a well said when it failed, without the key in it.
    """

    places: set[str]
    told: int
    leaks: list[str]
    grumbles: set[str]


def runs(wanted: Sequence[tuple[str, str]]) -> list[Report]:
    """Runs of scenarios, each with a leak that is planted or with none, in the one emulated account of this process."""
    with pytest.MonkeyPatch.context() as patch, closing(Sweep(patch)) as sweep:
        return [run(sweep, scenario, leak) for scenario, leak in wanted]


def run(sweep: Sweep, scenario: str, leak: str) -> Report:
    """One run, after which all that there is is read."""
    with pytest.MonkeyPatch.context() as patch:
        kept = listen(patch, grumbles=leak == "errors" or scenario == "renew")
        if leak:
            LEAKS[leak](patch, kept)
        sweep.site.on = sweep.site.plugged()  # for adapters keep the methods that they had
        with logged(kept):
            look_around(sweep, sweep.run(scenario))
    assert all(entry["public"] == ["name"] for entry in kept.told)
    wanted = [form for secret in {PASSWORD, *kept.keys} for form in forms(secret)]
    leaks = [f"{where}: {form}" for where, text in kept.said for form in wanted if form in text]
    told = sum(entry["metadata"]["password"] in kept.keys for entry in kept.told)
    grumbles = {where for where, text in kept.said if GRUMBLES + drivers.REDACTED in text}
    return Report({where for where, _ in kept.said}, told, leaks, grumbles)


def _in_rows(patch: pytest.MonkeyPatch, _: Kept) -> None:
    """What a well says is not sealed."""
    patch.setattr(KmsVault, "seal", lambda vault, secret, of: secret.decode())
    patch.setattr(KmsVault, "open", lambda vault, sealed, of: sealed.encode())


def _in_flows(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A flow is told what its step has got."""

    def succeed(flows: StepFlows, token: str) -> bool:
        flows._client.send_task_success(taskToken=token, output=json.dumps(sorted(kept.keys)))
        return True

    patch.setattr(StepFlows, "succeed", succeed)


def _in_messages(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A message has more than an id."""

    def advance(queues: SqsQueues, unit: str, is_worker: bool, after: int = 0, maker: str = "") -> None:
        queues._send(queues._factory if is_worker else queues._well, {"unit": unit, "x": sorted(kept.keys)}, after)

    patch.setattr(SqsQueues, "advance", advance)


def _in_logs(patch: pytest.MonkeyPatch, _: Kept) -> None:
    """A function logs its order."""
    make = drivers.create

    def create(on: Any, unit: Any, driver: Any, order: Order) -> Any:
        logging.getLogger("penstock").info("asks", extra={"order": order})
        return make(on, unit, driver, order)

    patch.setattr(drivers, "create", create)


def _in_errors(patch: pytest.MonkeyPatch, _: Kept) -> None:
    """What a well says when it fails is told as it is."""
    patch.setattr(drivers, "_redact", lambda text, hide: text)


LEAKS: Mapping[str, Callable[[pytest.MonkeyPatch, Kept], None]] = {
    "rows": _in_rows, "flows": _in_flows, "messages": _in_messages, "logs": _in_logs, "errors": _in_errors,
}  # fmt: skip
"""Leaks that must be found, by where they are."""


def look_around(sweep: Sweep, past: life.Life) -> None:
    """Read all that there is, as an operator and as somebody else, and what flows and queues keep."""
    site, runtime = sweep.site, past.runtime
    site.rows()
    users.create(site.on, "eve", [])
    other, _ = tokens.mint_first(site.on, "eve", "never", "")
    values = {
        "job": past.jobs()[0].id, "worker": units(past, "w-"), "resource": units(past, "r-"), "sort": "resource",
        "name": "bench", "output": "x", "artifact": past.jobs()[0].id, "owner": "ada", "series": "nightly",
        "version": "v1", "cache": "x", "delivery": "x", "token": "x", "code": "BCDF-GHJK", "set": "x", "segment": "0",
        "lease": past.jobs()[0].id,
    }  # fmt: skip
    for operation in openapi.users():
        if operation.method == "GET":
            for token in (sweep.token, other):
                runtime.ask("reader", "GET", operation.path.format(**values), token)
    flows = site.clients["stepfunctions"]
    for flow in flows.list_executions(stateMachineArn=site.machine)["executions"]:
        flows.describe_execution(executionArn=flow["executionArn"])
        flows.get_execution_history(executionArn=flow["executionArn"])
    for each in site.clients["s3"].list_objects_v2(Bucket="outputs").get("Contents", ()):
        site.clients["s3"].get_object(Bucket="outputs", Key=each["Key"])


def units(past: life.Life, kind: str) -> str:
    return next((unit.id for unit in past.units() if unit.id.startswith(kind)), "none")
