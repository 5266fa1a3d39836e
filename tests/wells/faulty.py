"""A service of the `http` well or factory in this process, with whatever a test has it do wrong."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from threading import Event, Thread
from typing import Any

from penstock.drivers.http import protocol
from penstock.drivers.http.protocol import RESOURCES
from penstock.drivers.http.serving import Endpoint, Handler, Reply, SeenRequests, server
from penstock.kernel.errors import DriverError, Misconfigured, Unknown
from tests.wells.service import SECRET

Fault = Callable[["Asked"], bool]


class Asked:
    """One request, as a fault sees it: what is asked, and ways to answer."""

    def __init__(self, rack: Faulty, handler: Any, method: str) -> None:
        self.rack, self.handler, self.method = rack, handler, method
        self.path: str = handler.path

    def act(self) -> None:
        """Do what is asked, and tell nobody."""
        self.overheard()

    def overheard(self) -> bytes:
        """Do what is asked; the answer, to the byte, which nobody was told."""
        wire, self.handler.wfile = self.handler.wfile, BytesIO()
        Handler.handle_request(self.handler)
        heard, self.handler.wfile = self.handler.wfile.getvalue(), wire
        return bytes(heard)

    def say(self, status: int, said: object, **headers: str) -> bool:
        """Answer as the service does, signed."""
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        signature = protocol.sign_answer(SECRET, status, self.handler.headers["Penstock-Request"], body)
        return self.raw(status, body, **{"Penstock-Signature": signature, **headers})

    def raw(self, status: int, body: bytes = b"", **headers: str) -> bool:
        """Answer as somebody else would."""
        given = {"Content-Length": str(len(body)), **headers}
        self.handler.send(Reply(status, {name.replace("_", "-"): value for name, value in given.items()}, body))
        return True

    def write(self, data: bytes) -> bool:
        """Say just that."""
        self.handler.wfile.write(data)
        return True


def loaded(example: Path) -> Any:
    """The module of an example."""
    found = importlib.util.spec_from_file_location(example.stem, example)
    assert found
    assert found.loader
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


class Faulty:
    """A service on a port of its own, until `end`. `of` is its collection."""

    def __init__(self, service: Any, of: str = RESOURCES) -> None:
        self.service, self.of = service, of
        self.seen = SeenRequests()
        self.faults: list[Fault] = []
        self.asked: list[tuple[str, str]] = []
        self.let_go, self.cut = Event(), Event()
        endpoint = Endpoint(self.service, SECRET, of=of, is_new=lambda *told: self.seen.is_new(*told))
        self._server = server(endpoint, 0)
        self._server.RequestHandlerClass = self._handler(self._server.RequestHandlerClass)
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def _handler(self, own: Any) -> Any:
        rack = self

        class Faulty(own):  # type: ignore[misc]
            def log_message(self, *told: object) -> None:
                pass

            def handle_request(self) -> None:
                rack.asked.append((self.command, self.path))
                asked = Asked(rack, self, self.command)
                if not any(fault(asked) for fault in rack.faults):
                    super().handle_request()

            do_GET = do_PUT = do_POST = do_DELETE = handle_request

        return Faulty

    def on(self, method: str, fault: Fault, times: int = 1000) -> None:
        """Do something else for some requests of a method, LIST and CONSOLE among them."""
        left = iter(range(times))

        def asked(what: Asked) -> bool:
            return self._kind(what) == method and next(left, None) is not None and fault(what)

        self.faults.append(asked)

    def _kind(self, what: Asked) -> str:
        path = what.path.partition("?")[0]
        if what.method == "GET" and path.endswith((self.of, "/console")):
            return "LIST" if path.endswith(self.of) else "CONSOLE"
        return what.method

    def end(self) -> None:
        """Stop it."""
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()


def _hang(asked: Asked) -> bool:
    return asked.rack.let_go.wait(30)


ANYBODY: dict[str, tuple[Fault, type[DriverError]]] = {
    "hangs": (_hang, Unknown),
    "ends": (lambda asked: True, Unknown),
    "says no HTTP": (lambda asked: asked.write(b"hello\r\n\r\n"), Unknown),
    "says less than it promised": (lambda asked: asked.raw(200, b"{}", Content_Length="50"), Unknown),
    "says too much": (lambda asked: asked.say(200, b" " * 70_000), Unknown),
    "says no end of it": (lambda asked: asked.raw(200, b"x" * 70_000, Content_Length="999999999"), Unknown),
    "says too much in a header": (lambda asked: asked.say(200, {}, X_Long="y" * 20_000), Unknown),
    "says too much in one line": (lambda asked: asked.say(200, {}, X_Long="y" * 70_000), Unknown),
    "says too many headers": (lambda asked: asked.say(200, {}, **{f"X-{n}": "y" for n in range(200)}), Unknown),
    "is not itself": (lambda asked: asked.raw(200, b'{"state": "ready"}'), Unknown),
    "is a gateway": (lambda asked: asked.raw(502, b"<html>"), Unknown),
    "is a gateway that has nobody": (lambda asked: asked.raw(404, b"<html>"), Unknown),
    "has another secret": (lambda asked: asked.raw(401, b"", Penstock_Signature="v1=" + "0" * 64), Misconfigured),
    "leads away": (lambda asked: asked.raw(302, b"", Location="http://169.254.169.254/"), Misconfigured),
    "says garbage": (lambda asked: asked.say(200, b"\xff{"), Misconfigured),
    "says a list": (lambda asked: asked.say(200, []), Misconfigured),
    "says what is no number": (lambda asked: asked.say(200, b'{"fence": NaN}'), Misconfigured),
    "says what is deep": (lambda asked: asked.say(200, b'{"a":' * 50 + b"1" + b"}" * 50), Misconfigured),
    "says what is very deep": (lambda asked: asked.say(200, b"[" * 60_000), Misconfigured),
    "says a very long number": (lambda asked: asked.say(200, b'{"a":' + b"1" * 9000 + b"}"), Misconfigured),
}  # fmt: skip
"""What any service may do instead of answering, and what that is to the driver that asked."""
