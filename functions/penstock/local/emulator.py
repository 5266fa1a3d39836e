"""The process that is the local cloud: MiniStack with our fixes, our API at /v1, the console, and a meter.

    python -m penstock.local.emulator FD PORT

It serves the listening socket FD, whose port is PORT, on the loopback interface. It stops on SIGTERM, or when the guard
at the other end of its standard input is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import ministack.app
from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.core import lambda_runtime

from penstock.console import headers
from penstock.drivers.factories.container.spec import CLOUD_SOCKET
from penstock.local import fixes, metering
from penstock.local.metering import Meter
from penstock.local.pages import Pages, Reply, Request


def main() -> None:
    """Serve until told to stop, then end every function's process."""
    descriptor, port = int(sys.argv[1]), int(sys.argv[2])
    meter = Meter()
    fixes.apply()
    metering.install(meter)
    console = os.environ.get("PENSTOCK_CONSOLE")
    pages = Pages(Path(console) if console else None)
    try:
        asyncio.run(_serve(Front(ministack.app.app, meter, port, os.environ["AWS_ACCESS_KEY_ID"], pages), descriptor))
    finally:
        lambda_runtime.reset()
        # Flows wait for tokens in threads that a normal exit would wait for in turn.
        os._exit(0)


async def _serve(app: Any, descriptor: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # a terminal's Ctrl-C is for the owner to act on
    loop.add_reader(sys.stdin.fileno(), stop.set)  # the guard never writes: readable means that it is gone
    config = Config()
    inner = _socket(os.environ.get("PENSTOCK_HOME"))
    config.bind = [f"fd://{descriptor}", *([f"fd://{inner}"] if inner else [])]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 0.5
    config.loglevel = "WARNING"
    await serve(app, config, shutdown_trigger=stop.wait)


def _socket(home: str | None) -> int | None:
    """Listen on a socket in the home too, for containers, which have not this machine's loopback.

    Any user may connect, as to the port. None without a home, or if the path is too long for one.
    """
    path = Path(home or "") / CLOUD_SOCKET
    if not home or not path.parent.is_dir() or len(os.fsencode(path)) > SOCKET_BYTES:
        return None
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o666)
    listener.listen(512)
    return listener.detach()


SOCKET_BYTES = 100
"""The longest path of a socket. Linux takes 107 bytes, macOS 103."""

Scope = MutableMapping[str, Any]


Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


App = Callable[[Scope, Receive, Send], Awaitable[None]]

METER = "/_penstock/meter"
ROUTE = "/_penstock/api"
HEALTH = "/_ministack/health"

ANSWER = "/_ministack/cfn-response/"
"""Where functions of a stack's own resources answer CloudFormation. The rest of the path is a secret of one request, as
in a presigned URL, and nothing is signed.
"""

SIGNED_BY = re.compile(r"(?:Credential=|X-Amz-Credential=)(\w+)(?:/|%2F)")


ROLE = "ASIA"
"""The prefix of key ids of roles. The emulator verifies those signatures itself."""


class Front:
    """An ASGI application around the emulator's.

    Requests never leave this machine, so they pass as https: policies that deny plain http are in force here too.
    """

    def __init__(self, emulator: App, meter: Meter, port: int, key: str, pages: Pages) -> None:
        self._emulator = emulator
        self._meter = meter
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._key = key
        self._pages = pages
        self._api = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on."""
        if scope["type"] != "http":
            await self._emulator(scope, receive, send)
            return
        path = scope["path"]
        if self._foreign(scope):
            await _reply(send, 403, {"error": "the local cloud answers this machine only, and no web pages of others"})
        elif path == METER and scope["method"] == "GET":
            await _reply(send, 200, self._meter.reading())
        elif path == f"{METER}/reset" and scope["method"] == "POST":
            self._meter.reset()
            await _reply(send, 200, {})
        elif path.startswith(f"{ROUTE}/") and scope["method"] == "PUT" and not self._api:
            self._api = path.removeprefix(f"{ROUTE}/")
            await _reply(send, 200, {})
        elif (path == "/v1" or path.startswith("/v1/")) and self._api:
            await self._emulator(self._at_gateway(scope), receive, _no_page(send))
        elif not _is_signed(scope) and (page := self._pages.answer(_request(scope))) is not None:
            await _answer(send, page)
        elif not _is_open(scope) and self._stranger(scope):
            await _reply(send, 403, {"error": "the AWS services of the local cloud want the key of whoever started it"})
        else:
            shown = send if _is_signed(scope) else _no_page(send)
            await self._emulator({**scope, "scheme": "https"}, receive, shown)

    def _foreign(self, scope: Scope) -> bool:
        """Whether another's web page may have sent it: the Origin of another, or a foreign Host (DNS rebinding)."""
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        host = dict(scope["headers"]).get(b"host", b"")
        return any(each != b"http://" + host for each in origins) or host.decode("latin-1") not in self._hosts

    def _stranger(self, scope: Scope) -> bool:
        """Whether it lacks the owner's key: any user can reach the port, and functions run as the owner."""
        signature = dict(scope["headers"]).get(b"authorization", b"") + b" " + scope["query_string"]
        signer = SIGNED_BY.search(signature.decode("latin-1"))
        return signer is None or not (signer[1] == self._key or signer[1].startswith(ROLE))

    def _at_gateway(self, scope: Scope) -> Scope:
        """The same request, where the emulator serves the deployed HTTP API, with the headers a gateway adds."""
        prefix = f"/_aws/execute-api/{self._api}/$default"
        client = (scope.get("client") or ("127.0.0.1", 0))[0]
        port = scope["server"][1] if scope.get("server") else 0
        forwarded = [("x-forwarded-for", client), ("x-forwarded-proto", "http"), ("x-forwarded-port", str(port))]
        return {
            **scope,
            "scheme": "https",
            "path": prefix + scope["path"],
            "raw_path": prefix.encode() + scope["raw_path"],
            "headers": [*scope["headers"], *((name.encode(), value.encode()) for name, value in forwarded)],
        }


def _is_open(scope: Scope) -> bool:
    """Whether the emulator answers it without a key."""
    path: str = scope["path"]
    return path == HEALTH or (scope["method"] == "PUT" and path.startswith(ANSWER))


def _is_signed(scope: Scope) -> bool:
    """Whether it shows a key of AWS as SDKs do, and as browsers never do."""
    return any(name == b"authorization" for name, _ in scope["headers"])


def _request(scope: Scope) -> Request:
    given = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    return Request(scope["method"], scope["path"], scope["query_string"], given)


def _no_page(send: Send) -> Send:
    """Sends what the API or the bucket replies so that a browser that opens it runs nothing of it. [SEC-2]

    All is of the console's origin here: a job's output would else act as whoever is signed in.
    """
    about = {"content-security-policy": headers.NOT_A_PAGE, "x-content-type-options": "nosniff"}

    async def told(event: MutableMapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            event = {**event, "headers": [*event["headers"], *_raw(about)]}
        await send(event)

    return told


def _raw(about: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in about.items()]


async def _reply(send: Send, status: int, body: Any) -> None:
    content = json.dumps(body).encode()
    await _answer(
        send, Reply(status, {"content-type": "application/json", "content-length": str(len(content))}, content)
    )


async def _answer(send: Send, reply: Reply) -> None:
    await send({"type": "http.response.start", "status": reply.status, "headers": _raw(reply.headers)})
    await send({"type": "http.response.body", "body": reply.body})


if __name__ == "__main__":
    main()
