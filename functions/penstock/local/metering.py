"""Counts what AWS would bill: operations, DynamoDB units, function calls and flow transitions."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import ministack.app
from ministack.core import iam_actions, lambda_runtime
from ministack.services import lambda_svc, sqs, stepfunctions

from penstock.local import prices


class Meter:
    """Counts since the last reset. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, Counter[str]] = {}
        self.reset()

    def reset(self) -> None:
        """Start from nothing."""
        with self._lock:
            self._counts = {}

    def add(self, kind: str, name: str, amount: float = 1) -> None:
        """Count some of one thing, for instance add("operations", "sqs:SendMessage")."""
        with self._lock:
            self._counts.setdefault(kind, Counter())[name] += amount  # type: ignore[assignment]

    def reading(self) -> dict[str, dict[str, Any]]:
        """Everything counted, by kind and name."""
        with self._lock:
            return {kind: dict(sorted(counts.items())) for kind, counts in sorted(self._counts.items())}


Handler = Callable[..., Awaitable[tuple[int, Any, Any]]]

READS = ("GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems")


def install(meter: Meter) -> None:
    """Count requests, function calls and transitions of the emulator."""
    callers: dict[str, str] = {}
    _name_callers(callers)
    for service, handler in list(ministack.app.SERVICE_HANDLERS.items()):
        ministack.app.SERVICE_HANDLERS[service] = _counted(service, handler, meter, callers)
    _count_calls(meter)
    _count_messages(meter)
    _count_transitions(meter)


def _name_callers(callers: dict[str, str]) -> None:
    """Give each function its own session token, so that each request names its function."""
    given = lambda_runtime.execution_credentials

    @wraps(given)
    def named(config: dict[str, Any]) -> dict[str, str]:
        credentials = given(config)
        token = credentials["AWS_SESSION_TOKEN"] or f"local-{config['FunctionName']}"
        callers[token] = config["FunctionName"]
        return {**credentials, "AWS_SESSION_TOKEN": token}

    lambda_runtime.execution_credentials = named


def _counted(service: str, handler: Handler, meter: Meter, callers: dict[str, str]) -> Handler:
    async def handle(method: str, path: str, headers: Any, body: bytes, query: Any) -> tuple[int, Any, Any]:
        action = iam_actions.extract_iam_action(service, method, path, headers, body, query)
        token = headers.get("x-amz-security-token") or (query.get("X-Amz-Security-Token") or [""])[0]
        meter.add("operations", _named(action, is_fifo=b".fifo" in body))
        meter.add("by", f"{callers.get(token, 'outside')} {action}")
        if service == "dynamodb":
            body = _asking_for_capacity(body)
        status, replied, content = await handler(method, path, headers, body, query)
        if service == "dynamodb" and status == 200:
            _add_capacity(meter, action.partition(":")[2], content)
        return status, replied, content

    return handle


def _named(action: str, *, is_fifo: bool) -> str:
    """What the operation counts as: those on FIFO queues cost more."""
    return action.replace("sqs:", prices.FIFO) if is_fifo else action


def _asking_for_capacity(body: bytes) -> bytes:
    asked = json.loads(body or b"{}")
    asked.setdefault("ReturnConsumedCapacity", "TOTAL")
    return json.dumps(asked).encode()


def _add_capacity(meter: Meter, operation: str, content: Any) -> None:
    used = json.loads(content).get("ConsumedCapacity") or []
    units = sum(each.get("CapacityUnits", 0) for each in (used if isinstance(used, list) else [used]))
    if units:
        meter.add("dynamodb units", "read" if operation in READS else "write", units)


def _count_calls(meter: Meter) -> None:
    execute = lambda_svc._execute_function_warm

    @wraps(execute)
    def counted(func: dict[str, Any], event: Any, request: str) -> Any:
        config = func.get("config") or func
        began = time.monotonic()
        try:
            return execute(func, event, request)
        finally:
            name, seconds = config["FunctionName"], time.monotonic() - began
            meter.add("calls", name)
            meter.add("megabyte seconds", name, seconds * config.get("MemorySize", 128))

    lambda_svc._execute_function_warm = counted


def _count_messages(meter: Meter) -> None:
    """Queues that AWS itself reads and writes, for a flow and for functions, are still paid by the request."""

    def counted(operation: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def count(*args: Any) -> Any:
            result = call(*args)
            if result or operation != "sqs:ReceiveMessage":  # AWS waits for messages, the emulator looks often
                is_fifo = isinstance(args[0], str) and args[0].endswith(".fifo")
                meter.add("operations", _named(operation, is_fifo=is_fifo))
            return result

        return count

    sqs._receive_messages_for_esm = counted("sqs:ReceiveMessage", sqs._receive_messages_for_esm)
    sqs._delete_messages_for_esm = counted("sqs:DeleteMessageBatch", sqs._delete_messages_for_esm)
    send = next(prefix for prefix in stepfunctions._SERVICE_DISPATCH if prefix.endswith("sqs:sendMessage"))
    stepfunctions._SERVICE_DISPATCH[send] = counted("sqs:SendMessage", stepfunctions._SERVICE_DISPATCH[send])


def _count_transitions(meter: Meter) -> None:
    """A transition is a state entered; the emulator records no entry for the states inside a Map."""
    add_event, run_item = stepfunctions._add_event, stepfunctions._run_sub_machine

    @wraps(add_event)
    def counted(execution: Any, kind: str, details: Any = None) -> Any:
        if kind.endswith("StateEntered"):
            meter.add("transitions", "state")
        return add_event(execution, kind, details)

    @wraps(run_item)
    def counted_item(states: dict[str, Any], *rest: Any) -> Any:
        meter.add("transitions", "state", len(states))
        return run_item(states, *rest)

    stepfunctions._add_event, stepfunctions._run_sub_machine = counted, counted_item
