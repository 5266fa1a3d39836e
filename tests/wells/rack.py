"""The service of examples/http_well.py in this process, with whatever a test has it do wrong."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from tests.wells.service import EXAMPLE, SECRET

Fault = Callable[["Asked"], bool]


class Asked:
    """One request, as a fault sees it: what is asked, and ways to answer."""

    def __init__(self, rack: Rack, handler: Any, method: str) -> None:
        self.rack, self.handler, self.method = rack, handler, method
        self.path: str = handler.path

    def act(self) -> None:
        """Do what is asked, and tell nobody."""
        said, self.handler.say = self.handler.say, lambda *told: None
        self.rack.example.Handler.handle_request(self.handler)
        self.handler.say = said

    def say(self, status: int, said: object, **headers: str) -> bool:
        """Answer as the service does, signed."""
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        request = self.handler.headers["Penstock-Request"]
        digest = self.rack.example.hashlib.sha256(body).hexdigest()
        signature = self.rack.example.signature("answer", str(status), request, digest)
        return self.raw(status, body, **{"Penstock-Signature": signature, **headers})

    def raw(self, status: int, body: bytes = b"", **headers: str) -> bool:
        """Answer as somebody else would."""
        self.handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.end_headers()
        self.handler.wfile.write(body)
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
        self.example = importlib.util.module_from_spec(found)
        found.loader.exec_module(self.example)
        self.example.os = type("Os", (), {"environ": {"WELL_SECRET": SECRET}})
        self.units: dict[str, dict[str, Any]] = self.example.units
        self.faults: list[Fault] = []
        self.asked: list[tuple[str, str]] = []
        self.let_go = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        rack = self

        class Handler(self.example.Handler):  # type: ignore[name-defined, misc]
            def log_message(self, *told: object) -> None:
                pass

            def handle_request(self) -> None:
                rack.asked.append((self.command, self.path))
                asked = Asked(rack, self, self.command)
                if not any(fault(asked) for fault in rack.faults):
                    super().handle_request()

            do_GET = do_PUT = do_POST = do_DELETE = handle_request

        return Handler

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
