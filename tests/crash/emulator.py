"""MiniStack inside this process, on a clock that only moves when told to, and with flows that never race with us.

What would go over the network goes through `Wire.send` instead, which is where faults are made. The emulator's own
code is what answers: its front door is called as a web server would call it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType, ModuleType
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest
from botocore import endpoint, httpsession, signers, useragent
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from greenlet import getcurrent, greenlet
from ministack import app as front
from ministack.services import eventbridge, sqs, stepfunctions

from penstock.aws import clock as aws_clock
from penstock.local import fixes
from penstock.testing.twin import ManualClock

Send = Callable[[AWSPreparedRequest], AWSResponse]


class Loses(Protocol):
    """Says of a message that SQS has taken whether it is lost; `by_service` if a flow or a rule has sent it."""

    def __call__(self, *, by_service: bool) -> bool: ...


def _never(*, by_service: bool) -> bool:
    del by_service
    return False


class Wire:
    """Takes the place of the network. `through` may be replaced by whoever wants to make a request go wrong."""

    def __init__(self, flows: Flows) -> None:
        self._loop = asyncio.new_event_loop()
        self._one_at_a_time = threading.Lock()
        self._flows = flows
        self.through: Send = self.answer
        self.loses: Loses = _never

    def send(self, request: AWSPreparedRequest) -> AWSResponse:
        """What botocore calls to send a request."""
        return self.through(request)

    def answer(self, request: AWSPreparedRequest) -> AWSResponse:
        """The emulator's answer, when the flows that it moved on have come to rest."""
        url = urlsplit(request.url)
        body = request.body or b""
        content = body.read() if hasattr(body, "read") else _bytes(body)
        scope = {
            "type": "http",
            "method": request.method,
            "scheme": "https",
            "path": url.path or "/",
            "raw_path": (url.path or "/").encode(),
            "query_string": url.query.encode(),
            "headers": [(_bytes(name).lower(), _bytes(value)) for name, value in request.headers.items()]
            + [(b"host", url.netloc.encode())],
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 1),
        }
        sent: list[Any] = []
        given = iter([{"type": "http.request", "body": content}])

        async def receive() -> Any:
            return next(given, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        with self._one_at_a_time:  # some tests call a driver from two threads
            self._loop.run_until_complete(front.app(scope, receive, send))
        self._flows.rest()
        headers: Any = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        reply = b"".join(message.get("body", b"") for message in sent[1:])
        return AWSResponse(request.url, sent[0]["status"], headers, _Content(reply))


class _Content:
    """A body that was received whole."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> Iterator[bytes]:
        yield self._content

    def read(self, *_: Any) -> bytes:
        return self._content


def _bytes(value: str | bytes | bytearray) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Flows:
    """Walks flows, and calls their Lambda tasks when the test says so.

    Each flow is a greenlet: it goes on by itself until it waits for something that has not happened. There is no other
    thread, so that the same happens in each run, and a process may part into two in the middle of one.
    """

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self._moving: list[greenlet] = []
        self._parked: dict[Happening, greenlet] = {}
        self._numbered = 0

    def rest(self) -> None:
        """Let flows go on until none moves by itself."""
        while self._moving:
            self._moving.pop(0).switch()

    def invoke(self, _: str, event: Any) -> Any:
        """Take the place of the emulator's call of a function: the flow waits for what the test makes of it."""
        task = Task(event, self.event())
        self.tasks.append(task)
        task.done.wait()
        if task.error:
            raise stepfunctions._ExecutionError(task.error, "{}")
        return {}

    def event(self) -> Happening:
        """What flows have in place of a threading.Event."""
        return Happening(self)

    def park(self, until: Happening) -> None:
        """The present flow goes on when something has happened."""
        flow = getcurrent()
        assert flow.parent is not None, "who waits is no flow"
        self._parked[until] = flow
        flow.parent.switch()

    def go_on(self, after: Happening) -> None:
        """What waits for this goes on."""
        if after in self._parked:
            self._moving.append(self._parked.pop(after))

    def thread(self, *, target: Callable[..., Any], args: tuple[Any, ...], daemon: bool) -> Walk:
        """What flows have in place of a threading.Thread."""
        del daemon
        return Walk(self, lambda: target(*args))

    def start(self, walk: Callable[[], None]) -> None:
        """Begin to walk, as soon as flows go on."""
        self._moving.append(greenlet(walk))

    def stand(self) -> list[tuple[str, str]]:
        """What has become of each flow."""
        return sorted((each["name"], each["status"]) for each in stepfunctions._executions.values())

    def parked(self) -> list[FrameType | None]:
        """Where those stand that wait."""
        return [flow.gr_frame for flow in self._parked.values()]

    def number(self) -> str:
        """What flows have in place of a random id: the same in each run."""
        self._numbered += 1
        return f"{self._numbered:032}"

    def forget(self) -> None:
        """End every flow that is still parked, and forget all of them."""
        for execution in stepfunctions._executions.values():
            execution["status"] = "ABORTED" if execution["status"] == "RUNNING" else execution["status"]
        for event in list(self._parked):
            event.set()
        self.rest()
        stepfunctions._executions.clear()
        stepfunctions._task_tokens.clear()
        self.tasks.clear()
        self._numbered = 0


class Happening:
    """As much of a threading.Event as flows need."""

    def __init__(self, flows: Flows) -> None:
        self._flows = flows
        self._is_set = False

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._is_set

    def set(self) -> None:
        """It happens."""
        self._is_set = True
        self._flows.go_on(self)

    def wait(self, timeout: float | None = None) -> bool:
        """Park the present flow until it has happened."""
        del timeout  # no state of our flow has one, and the test's clock is not a thread's
        if not self._is_set:
            self._flows.park(self)
        return self._is_set


class Walk:
    """As much of a threading.Thread as flows need."""

    def __init__(self, flows: Flows, target: Callable[[], None]) -> None:
        self._flows, self._target, self._over = flows, target, flows.event()

    def start(self) -> None:
        """Walk, as soon as flows go on."""
        self._flows.start(self._walk)

    def join(self) -> None:
        """Park the present flow until this one has ended."""
        self._over.wait()

    def _walk(self) -> None:
        try:
            self._target()
        finally:
            self._over.set()


class OneByOne:
    """As much of a pool of threads as the items of our flow's Map need, which takes one at a time."""

    def __init__(self, max_workers: int) -> None:
        assert max_workers == 1, "the emulator would run several items of a flow at once"

    def __enter__(self) -> OneByOne:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, item: Callable[..., None], *given: Any) -> None:
        """Run an item to its end, in the flow's own greenlet."""
        item(*given)


class Task:
    """A flow's call of a function, which waits for `finish`."""

    def __init__(self, event: Any, done: Any) -> None:
        self.event = event
        self.done = done
        self.error: str | None = None

    def finish(self, error: str | None = None) -> None:
        """Answer the flow."""
        self.error = error
        self.done.set()


class Clock(ModuleType):
    """The module `time`, for code that shall see the test's clock and never sleep."""

    def __init__(self, world: ManualClock) -> None:
        super().__init__("time")
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def time(self) -> float:
        return self._world.now().timestamp()

    def sleep(self, seconds: float) -> None:
        del seconds


def install(patch: pytest.MonkeyPatch, world: ManualClock) -> tuple[Wire, Flows]:
    """Put the emulator where the network was. Undone with the patch."""
    patch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    flows = Flows()
    wire = Wire(flows)
    clock = Clock(world)
    threads = ModuleType("threading")
    threads.Event, threads.Thread, threads.Lock = flows.event, flows.thread, threading.Lock  # type: ignore[attr-defined]
    patch.setattr(stepfunctions, "_run_map_items", stepfunctions._run_map_items)
    patch.setattr(stepfunctions, "_run_sub_machine", stepfunctions._run_sub_machine)
    patch.setattr(stepfunctions, "_start_execution", stepfunctions._start_execution)
    fixes.a_map_goes_on_after_a_failed_item()
    fixes.an_open_flow_is_refused_when_it_is_started_again()
    patch.setattr(stepfunctions, "time", clock)
    patch.setattr(stepfunctions, "threading", threads)
    patch.setattr(stepfunctions, "new_uuid", flows.number)
    patch.setattr(stepfunctions, "ThreadPoolExecutor", OneByOne)
    patch.setattr(stepfunctions, "futures_wait", lambda _: None)
    patch.setattr(stepfunctions, "_call_lambda", flows.invoke)
    _lose_messages(patch, wire)
    for module in (sqs, eventbridge, endpoint, aws_clock):
        patch.setattr(module, "time", clock)
    # Nobody checks these two, and they take a third of the time of a call.
    patch.setattr(signers.RequestSigner, "sign", _sign)
    patch.setattr(useragent.UserAgentString, "to_string", lambda _: "crash-sweep")
    patch.setattr(httpsession.URLLib3Session, "send", lambda _, request: wire.send(request))
    return wire, flows


def _lose_messages(patch: pytest.MonkeyPatch, wire: Wire) -> None:
    """Ask of every message that comes into a queue whether it is lost: those of handlers, of flows and of rules."""
    send, dispatch = sqs._act_send_message, eventbridge._dispatch_to_sqs

    def sent(data: dict[str, Any], url: str, *, by_service: bool) -> dict[str, Any]:
        taken: dict[str, Any] = send(data, url)
        if wire.loses(by_service=by_service):
            queue = sqs._get_q(data.get("QueueUrl", url))
            queue["messages"] = [each for each in queue["messages"] if each["id"] != taken["MessageId"]]
        return taken

    def dispatched(*given: Any) -> None:
        if not wire.loses(by_service=True):
            dispatch(*given)

    patch.setitem(sqs._HANDLERS, "SendMessage", partial(sent, by_service=False))
    patch.setattr(sqs, "_act_send_message", partial(sent, by_service=True))
    patch.setattr(eventbridge, "_dispatch_to_sqs", dispatched)


def _sign(signer: Any, operation: str, request: Any, *_: Any, **__: Any) -> None:
    """What the emulator reads of a signature: the account, the region and the service."""
    scope = f"test/20260101/{signer.region_name}/{signer.signing_name}/aws4_request"
    request.headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=none"
