"""One thing going wrong at one AWS call: which call, and what."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from io import BytesIO
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ConnectionClosedError

from tests.crash.emulator import Send, Wire


class Mode(StrEnum):
    """What goes wrong at a call."""

    DIES_BEFORE = "dies-before"  # the process ends before the call is made; its event comes again
    DIES_AFTER = "dies-after"  # the call takes place, its answer finds nobody; the event comes again
    ANSWER_LOST = "answer-lost"  # the call takes place, the connection breaks, the SDK makes it once more
    THROTTLED = "throttled"  # the service refuses the call, however often the SDK tries, and we after it
    TWICE = "twice"  # before the call, the same event is delivered once more and handled to its end
    OVERTAKEN = "overtaken"  # before the call, everything else that can happen happens, sweep and all
    LOST = "lost"  # SQS takes a message, and nobody ever receives it: as in a dead-letter queue, or purged


class Died(BaseException):
    """The function's process ended. No `except Exception` of ours sees it."""


SENDS = "SendMessage"
"""The operation whose message may be lost. No code of ours sends several at once."""

SERVICE = "aws"
"""Who sends the messages of flows and rules. Only the loss of one is tried there: AWS makes these calls by itself."""

READS = ("Get", "Query", "BatchGet", "List", "Head")
"""How the names of operations begin that change nothing. What is not known to be one counts as a change."""


@dataclass(frozen=True)
class Call:
    """One call of one handler, of AWS or of GitHub. `event` counts the events that handlers were called with."""

    handler: str
    operation: str
    event: int

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.operation.startswith(READS)


@dataclass(frozen=True)
class Fault:
    """A mode at the call with this number, counted from 0 over a whole run."""

    number: int
    mode: Mode

    def at(self, number: int) -> Mode | None:
        """What goes wrong at the call with this number."""
        return self.mode if number == self.number else None


Plan = Callable[[int], Mode | None]
"""Says for the number of each call what goes wrong there. Only one thing goes wrong in a run."""


def calm(_: int) -> None:
    """Nothing goes wrong."""


def points(calls: Sequence[Call], modes: Iterable[Mode], of: Collection[str] = (), *, every: bool) -> list[Fault]:
    """Every mode at every call, of some handlers if they are named; unless `every`, without those that are the same as
    others, for reads change nothing.

    To lose the answer of a read is to read twice; to die after it is to die after the change before it; and to die
    before a call that follows a read is to die before that read.
    """

    def is_possible(call: Call, mode: Mode) -> bool:
        return call.operation == SENDS if mode is Mode.LOST else call.handler != SERVICE

    def differs(number: int, mode: Mode) -> bool:
        if mode in (Mode.ANSWER_LOST, Mode.DIES_AFTER):
            return not calls[number].reads
        before = calls[number - 1] if number else None
        is_first = before is None or before.event != calls[number].event
        return mode is not Mode.DIES_BEFORE or is_first or not (before and before.reads)

    numbers = [number for number, call in enumerate(calls) if not of or call.handler in of]
    possible = [Fault(number, mode) for mode in modes for number in numbers if is_possible(calls[number], mode)]
    return [fault for fault in possible if every or differs(fault.number, fault.mode)]


@dataclass(frozen=True)
class Way:
    """How a call is answered, how it is refused, and how its answer is lost."""

    answer: Callable[[], Any]
    refuse: Callable[[], Any]
    lost: Callable[[], Exception]


class Seam:
    """Between the functions and all that they call. Counts their calls; `mode` is what went wrong at one."""

    def __init__(self, wire: Wire, plan: Plan) -> None:
        self.calls: list[Call] = []
        self.mode: Mode | None = None
        self.handler = ""
        self.events = 0
        self.again: Callable[[], None] = lambda: None
        self.others: Callable[[], None] = lambda: None
        self._plan = plan
        self._refused: tuple[int, str] | None = None
        self._known: set[str] = set()
        self._loses = False
        self._answer: Send = wire.answer
        wire.through = self._through
        wire.loses = self._is_lost

    @contextmanager
    def running(self, handler: str) -> Iterator[None]:
        """Requests in here are those of a handler."""
        before, self.handler = self.handler, handler
        self.events += 1
        try:
            yield
        finally:
            self.handler = before

    def _through(self, request: AWSPreparedRequest) -> AWSResponse:
        invocation = _header(request, "amz-sdk-invocation-id")
        if (self.events, _what(request)) == self._refused:
            return _throttle(request)
        if not self.handler or invocation in self._known:  # the test's own, or the SDK tries again
            return self._answer(request)
        self._known.add(invocation)

        def refuse() -> AWSResponse:
            self._refused = (self.events, _what(request))
            return _throttle(request)

        def lost() -> Exception:
            return ConnectionClosedError(endpoint_url=request.url)

        answered: AWSResponse = self.call(_operation(request), Way(lambda: self._answer(request), refuse, lost))
        return answered

    def call(self, operation: str, way: Way) -> Any:
        """A handler's call, which goes wrong if that is its turn."""
        mode = self._turn(self.handler, operation)
        return self._go_wrong(mode, way) if mode else way.answer()

    def _turn(self, handler: str, operation: str) -> Mode | None:
        """Count a call; what goes wrong there."""
        number = len(self.calls)
        self.calls.append(Call(handler, operation, self.events))
        mode = None if self.mode else self._plan(number)
        self.mode = self.mode or mode
        return mode

    def _is_lost(self, *, by_service: bool) -> bool:
        """Whether a message that SQS has taken is lost."""
        if by_service:
            return self._turn(SERVICE, SENDS) is Mode.LOST
        is_lost, self._loses = self._loses, False
        return is_lost

    def _go_wrong(self, mode: Mode, way: Way) -> Any:
        if mode is Mode.DIES_BEFORE:
            raise Died
        if mode is Mode.THROTTLED:
            return way.refuse()
        self._loses = mode is Mode.LOST
        if mode in (Mode.TWICE, Mode.OVERTAKEN):
            with self.running(""):
                (self.again if mode is Mode.TWICE else self.others)()
        answer = way.answer()
        if mode is Mode.DIES_AFTER:
            raise Died
        if mode is Mode.ANSWER_LOST:
            raise way.lost()
        return answer


def _operation(request: AWSPreparedRequest) -> str:
    return _header(request, "x-amz-target").rpartition(".")[2] or f"{str(request.method).title()}Object"


def _what(request: AWSPreparedRequest) -> str:
    """What a call is, whoever makes it again: the SDK, or we with a new transaction."""
    if _operation(request) == "TransactWriteItems":
        return json.dumps(json.loads(request.body or b"{}").get("TransactItems"))
    return _header(request, "amz-sdk-invocation-id")


def _header(request: AWSPreparedRequest, name: str) -> str:
    value = request.headers.get(name) or ""
    return value.decode() if isinstance(value, bytes) else str(value)


class _Refusal(BytesIO):
    """A body as botocore reads one."""

    def stream(self) -> Iterator[bytes]:
        yield self.getvalue()


def _throttle(request: AWSPreparedRequest) -> AWSResponse:
    """What a service says that has had enough of us. The SDK knows it by its code, but not that of a transaction."""
    status, body = 400, b'{"__type": "ThrottlingException", "message": "Rate exceeded"}'
    if _operation(request) == "TransactWriteItems":
        reasons = [{"Code": "ThrottlingError"} for _ in json.loads(request.body or b"{}")["TransactItems"]]
        told = {"__type": "TransactionCanceledException", "message": "cancelled", "CancellationReasons": reasons}
        body = json.dumps(told).encode()
    if not _header(request, "x-amz-target"):
        status, body = 503, b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
    headers: Any = {}
    return AWSResponse(request.url, status, headers, _Refusal(body))
