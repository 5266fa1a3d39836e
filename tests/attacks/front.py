"""The handlers behind a socket, so that the command line can call them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.functions.service import Service


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """The URL at which a service answers, one request after the other, while the block runs."""

    class Door(BaseHTTPRequestHandler):
        def answer(self) -> None:
            where = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            query, headers = parse_qsl(where.query), {name.lower(): value for name, value in self.headers.items()}
            path = unquote(where.path)
            found = service.ask(self.command, path, body or None, as_=None, query=query, headers=headers)
            self.send_response(found.status)
            for cookie in found.cookies:
                self.send_header("set-cookie", cookie)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)

        do_GET = do_POST = do_PUT = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
