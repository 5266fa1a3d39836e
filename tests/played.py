"""A service of AWS that a test plays, behind boto3's own client.

So every request is built and checked by botocore, and every answer is held against the service's description. The fake
has one method for each operation.

Time is a number of seconds that a test moves; every call takes one. A call may be refused, throttled, or die on either
side of what it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import RLock, local
from typing import Any, ClassVar

import boto3
from botocore.awsrequest import AWSResponse
from botocore.validate import validate_parameters


class Crash(BaseException):
    """The function died here. Nothing of ours catches it."""


class Refusal(Exception):
    """The service says no."""

    def __init__(self, code: str, message: str = "", status: int = 400) -> None:
        super().__init__(code)
        self.code, self.message, self.status = code, message or f"about {code}", status


@dataclass
class Played:
    """A service. What is public may be set and read by tests."""

    service: ClassVar[str]
    throttled: ClassVar[Refusal] = Refusal("ThrottlingException", "Rate exceeded")

    now: int = 0
    answers: dict[str, list[Refusal]] = field(default_factory=dict)
    buckets: dict[str, tuple[int, float]] = field(default_factory=dict)
    crashes: dict[tuple[str, str], int] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    made_client: Any = None
    lock: Any = field(default_factory=RLock, repr=False)
    """Calls are answered one after the other, as if each were a transaction."""

    def client(self, region: str) -> Any:
        """A real client that ends here instead of in the network. One for all: making one takes a while."""
        with self.lock:
            self.made_client = self.made_client or self._connect(region)
        return self.made_client

    def _connect(self, region: str) -> Any:
        connect: Any = boto3.client
        made = connect(self.service, region, aws_access_key_id="test", aws_secret_access_key="test")
        built = local()

        def remember(params: dict[str, Any], **_: Any) -> None:
            built.params = params

        def answer(model: Any, **_: Any) -> Any:
            with self.lock:
                return self._answer(model, built.params)

        made.meta.events.register_last(f"before-parameter-build.{self.service}.*", remember)
        made.meta.events.register(f"before-call.{self.service}.*", answer)
        return made

    def _answer(self, model: Any, params: dict[str, Any]) -> tuple[AWSResponse, dict[str, Any]]:
        self.now += 1
        name = model.name
        self.calls.append((name, params))
        self._crash(name, "before")
        try:
            self._throttle(name)
            if self.answers.get(name):
                raise self.answers[name].pop(0)
            said = getattr(self, name)(params)
        except Refusal as no:
            said = {
                "Error": {"Code": no.code, "Message": no.message},
                "ResponseMetadata": {"HTTPStatusCode": no.status},
            }
            return AWSResponse("", no.status, {}, None), said
        if model.output_shape:
            validate_parameters(said, model.output_shape)
        self._crash(name, "after")
        return AWSResponse("", 200, {}, None), said

    def _crash(self, name: str, side: str) -> None:
        left = self.crashes.get((name, side), 0)
        self.crashes[name, side] = left - 1
        if left == 1:
            raise Crash(f"{side} {name}")

    def _throttle(self, name: str) -> None:
        """A bucket of tokens per call: how many it holds, and how many flow in each second."""
        if name not in self.buckets:
            return
        size, rate = self.buckets[name]
        recent = sum(1 for call, _ in self.calls[:-1] if call == name)
        if recent >= size + rate * self.now:
            raise self.throttled

    def fail(self, call: str, code: str, message: str = "", times: int = 1, status: int = 400) -> None:
        """Have the next calls answered with an error."""
        self.answers.setdefault(call, []).extend([Refusal(code, message, status)] * times)
