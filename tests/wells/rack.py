"""The service of examples/http_well.py in this process, with whatever a test has it do wrong."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from io import BytesIO
from threading import Event, Thread
from typing import Any

from penstock.drivers.http import protocol
from penstock.drivers.http.serving import Endpoint, Handler, Reply, SeenRequests, server
from tests.wells.service import EXAMPLE, SECRET

Fault = Callable[["Asked"], bool]


class Asked:
    """One request, as a fault sees it: what is asked, and ways to answer."""

    def __init__(self, rack: Rack, handler: Any, method: str) -> None:
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


class Rack:
    """The service on a port of its own, until `end`. What it has is `units`."""

    def __init__(self) -> None:
        found = importlib.util.spec_from_file_location("http_well", EXAMPLE)
        assert found
        assert found.loader
        example = importlib.util.module_from_spec(found)
        found.loader.exec_module(example)
        self.service: Any = example.Rack()
        self.units: dict[str, dict[str, Any]] = self.service.units
        self.seen = SeenRequests()
        self.faults: list[Fault] = []
        self.asked: list[tuple[str, str]] = []
        self.let_go, self.cut = Event(), Event()
        self._server = server(Endpoint(self.service, SECRET, is_new=lambda *told: self.seen.is_new(*told)), 0)
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
        """Do something else for some requests of a method. A path that ends with `list` is the list's."""
        left = iter(range(times))

        def asked(what: Asked) -> bool:
            kind = "LIST" if what.method == "GET" and "/resources/" not in what.path else what.method
            return kind == method and next(left, None) is not None and fault(what)

        self.faults.append(asked)

    def end(self) -> None:
        """Stop it."""
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()
