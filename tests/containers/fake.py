"""A container engine on a real unix socket, as the documents of the Docker Engine API describe it (version 1.41).

It has the faults that engines have: errors of each status, answers that are slow, cut off, or no JSON.
"""

from __future__ import annotations

import io
import json
import socketserver
import tarfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from penstock.drivers.factories.container.spec import WAIT, WAITING

OUTPUT = [b"worker: saying hello\n", b"k" * 64 + b"\n", b"the end\n"]


@dataclass
class Fault:
    """What is wrong with the next calls that begin so: how many, and which status and message, or which `way`.

    `way`: `slow`, `cut` (off within the body), `garbage` (no JSON), `closed` (no answer), `after` (acts, then closes).
    """

    call: str
    status: int = 0
    message: str = ""
    way: str = ""
    times: int = 1


@dataclass
class Box:
    """A container of the fake."""

    id: str
    name: str
    spec: dict[str, Any]
    state: str = "created"
    starts: int = 0
    error: str = ""
    started: str = ""
    code: int = 0
    files: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    is_bounded: bool = True

    def shown(self) -> dict[str, Any]:
        config = {"Labels": self.spec["Labels"], "Image": self.spec["Image"]}
        return {
            "Id": self.id,
            "Name": f"/{self.name}",
            "State": {
                "Status": self.state,
                "Error": self.error,
                "StartedAt": self.started,
                "ExitCode": self.code,
            },
            "Config": config,
            "HostConfig": {"Memory": self.spec["HostConfig"].get("Memory", 0) if self.is_bounded else 0},
        }

    def listed(self) -> dict[str, Any]:
        return {"Id": self.id, "Names": [f"/{self.name}"], "State": self.state, "Labels": self.spec["Labels"]}


class FakeEngine:
    """Its state, and the server at its socket."""

    def __init__(self, folder: Path, *images: str) -> None:
        self.path = str(folder / "engine.sock")
        self.images, self.registry = set(images), set[str]()
        self.boxes: dict[str, Box] = {}
        self.oldest, self.versions = "1.24", set[str]()
        self.podman = ""
        """The oldest version of Podman's own API that it speaks; "" if it is Docker."""
        self.networks: dict[str, dict[str, Any]] = {}
        """What was asked for, by id."""
        self.repeats_names = False
        """Whether it makes a second network of a name, as Docker did before 1.44 for two calls at once."""
        self.lingering = 0
        """How many times a network is still listed after it was removed."""
        self.faults: list[Fault] = []
        self.calls: list[str] = []
        self.on_archive: Callable[[], object] | None = None
        """Called once, when files have been put into a container."""
        self.removals = 0
        """How many times a removal is only begun: the container is there a while longer."""
        self.commands: dict[str, int | None] = {}
        """The exit codes of commands that are run in containers; of those with None, the end does not come."""
        self.runs: list[tuple[str, str]] = []
        """In which container which command was run."""
        self.bounds_memory = True
        """Whether it does as it is told of memory: without root, on cgroups v1, Podman ignores it."""
        self.lock, self._number = threading.Lock(), 0
        self._server = Server(self.path, type("Bound", (Handler,), {"engine": self}))
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fail(self, call: str, status: int = 0, message: str = "", way: str = "", times: int = 1) -> None:
        """Have the next calls fail whose method and path begin so."""
        self.faults.append(Fault(call, status, message, way, times))

    def fault(self, call: str) -> Fault | None:
        """The fault of a call, counted down."""
        with self.lock:
            for each in self.faults:
                if call.startswith(each.call) and each.times:
                    each.times -= 1
                    return each
        return None

    def box(self, key: str) -> Box | None:
        return next((each for each in self.boxes.values() if key in (each.id, each.name)), None)

    def make(self, name: str, spec: dict[str, Any]) -> tuple[int, Any]:
        if spec["Image"] not in self.images:
            return 404, said("No such image: " + spec["Image"])
        if self.box(name):
            return 409, said(f'Conflict. The container name "/{name}" is already in use')
        self._number += 1
        made = Box(f"{self._number:064x}", name, spec, is_bounded=self.bounds_memory)
        self.boxes[made.id] = made
        return 201, {"Id": made.id, "Warnings": []}

    def start(self, box: Box) -> tuple[int, Any]:
        if box.state == "running":
            return 304, None
        network = box.spec["HostConfig"]["NetworkMode"]
        kind, _, other = network.partition(":")
        if kind == "container" and not self.box(other):
            return 404, said(f"No such container: {other}")
        if kind != "container" and not self.network(network) and network != "none":
            return 404, said(f"network {network} not found")
        box.state, box.starts = "running", box.starts + 1
        box.started = datetime.now(UTC).isoformat().replace("+00:00", "000Z")
        if WAIT in box.spec.get("Entrypoint", []):
            box.files[WAITING] = (0o600, b"")
        return 204, None

    def network(self, key: str) -> dict[str, Any] | None:
        """A network by its id or its name."""
        return next((each for id, each in self.networks.items() if key in (id, each["Name"])), None)

    def listed_networks(self, query: dict[str, str], id: str, labels: str) -> list[dict[str, Any]]:
        found = [(key, each["Labels"]) for key, each in self.networks.items() if has_labels(each, query)]
        return [{id: key, labels: its} for key, its in found]

    def make_network(self, given: dict[str, Any]) -> tuple[int, Any]:
        if self.network(given["Name"]) and not self.repeats_names:
            return 409, said(f"network with name {given['Name']} already exists")
        self._number += 1
        self.networks[f"{self._number:064x}"] = given
        return 201, {"Id": f"{self._number:064x}"}

    def remove_network(self, id: str) -> tuple[int, Any]:
        if id not in self.networks:
            return 404, said(f"network {id} not found")
        if any(each.spec["HostConfig"]["NetworkMode"] == id for each in self.boxes.values()):
            return 403, said(f"error while removing network: network {id} has active endpoints")
        if self.lingering:
            self.lingering -= 1
        else:
            del self.networks[id]
        return 204, None

    def remove(self, box: Box, force: bool) -> tuple[int, Any]:
        dependents = [each for each in self.boxes.values() if each.spec["HostConfig"]["NetworkMode"].endswith(box.id)]
        if dependents:
            return 409, said("container has dependent containers which must be removed before it")
        if box.state == "running" and not force:
            return 409, said("You cannot remove a running container. Stop it, or force remove")
        if self.removals:
            self.removals -= 1
            box.state = "removing"
            return 409, said("removal of container is already in progress")
        del self.boxes[box.id]
        return 204, None


def has_labels(described: dict[str, Any], query: dict[str, str]) -> bool:
    """Whether something has all labels that a list is filtered by."""
    wanted = dict(each.split("=", 1) for each in json.loads(query["filters"])["label"])
    return wanted.items() <= described["Labels"].items()


def said(message: str) -> dict[str, str]:
    return {"message": message}


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is nothing to report."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    engine: FakeEngine
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/version":
            self._version()
            return
        _, version, rest = parts.path.split("/", 2)
        self.engine.versions.add(version)
        path = f"/{unquote(rest)}"
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        call = f"{self.command} {path}"
        self.engine.calls.append(call)
        fault = self.engine.fault(call)
        if (fault and fault.way not in ("", "after")) or (fault and fault.status):
            self._fail(fault)
            return
        if call == "POST /images/create":
            self._pull(query)
        elif path.endswith("/logs"):
            self._logs(path)
        else:
            with self.engine.lock:
                status, answer = self._answer(call, path, query, body)
            if fault:
                self.close_connection = True
            else:
                self._send(status, b"" if answer is None else json.dumps(answer).encode())

    def _version(self) -> None:
        fault = self.engine.fault("GET /version")
        if fault:
            self._fail(fault)
        else:
            said = {"ApiVersion": "1.52", "MinAPIVersion": self.engine.oldest, "Components": self._components()}
            self._send(200, json.dumps(said).encode())

    def _components(self) -> list[Any]:
        oldest, runtime = self.engine.podman, {"Name": "runc", "Version": "1.1.5"}
        name = "Podman Engine" if oldest else "Engine"
        return [{"Name": name, "Details": {"MinAPIVersion": oldest or self.engine.oldest}}, runtime]

    def _fail(self, fault: Fault) -> None:
        self.close_connection = True
        if fault.way == "slow":
            time.sleep(1.0)
        elif fault.way == "cut":
            self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"Id": "a')
        elif fault.way == "garbage":
            self._send(200, b"<html>what?</html>")
        elif fault.way == "odd":
            self._send(200, b'[{"Id": 1}]' if fault.call.endswith(("containers/json", "networks")) else b'{"Id": 1}')
        elif fault.status:
            self._send(fault.status, json.dumps(said(fault.message)).encode())

    def _answer(self, call: str, path: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        engine, steps = self.engine, path.strip("/").split("/")
        if call == "GET /containers/json":
            assert query["all"] == "1"
            return 200, [each.listed() for each in engine.boxes.values() if has_labels(each.spec, query)]
        if call == "POST /containers/create":
            return engine.make(query["name"], json.loads(body))
        if steps[0] == "images":
            there = path.removeprefix("/images/").removesuffix("/json") in engine.images
            return (200, {"Id": "sha256:1"}) if there else (404, said("No such image"))
        if path == "/libpod/networks/json":
            assert self.path.startswith(f"/v{engine.podman}/")
            return 200, engine.listed_networks(query, "id", "labels")
        if steps[0] == "networks":
            return self._network(call, query, body)
        if steps[0] == "exec":
            return self._exec(call, int(steps[1]))
        box = engine.box(steps[1])
        if not box:
            return 404, said(f"No such container: {steps[1]}")
        return self._of_box(call, box, query, body)

    def _of_box(self, call: str, box: Box, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if call.startswith("DELETE"):
            return self.engine.remove(box, query.get("force") == "1")
        if call.endswith("/start"):
            return self.engine.start(box)
        if call.endswith("/exec"):
            self.engine.runs.append((box.name, json.loads(body)["Cmd"][-1]))
            return 201, {"Id": str(len(self.engine.runs) - 1)}
        if call.startswith("HEAD"):
            return (200, None) if query["path"] in box.files else (404, None)
        if call.endswith("/archive"):
            with tarfile.open(fileobj=io.BytesIO(body)) as tar:
                for each in tar:
                    content = tar.extractfile(each) if each.isfile() else None
                    box.files[f"/{each.name}"] = (each.mode, content.read() if content else b"")
            then, self.engine.on_archive = self.engine.on_archive, None
            if then:
                then()
            return 200, None
        return 200, box.shown()

    def _exec(self, call: str, run: int) -> tuple[int, Any]:
        """A command that was run: its exit code, or that it runs still."""
        code = self.engine.commands.get(self.engine.runs[run][1], 127)
        if call.endswith("/start"):
            return 200, None
        return 200, {"Running": code is None, "ExitCode": code or 0}

    def _network(self, call: str, query: dict[str, str], body: bytes) -> tuple[int, Any]:
        if call == "POST /networks/create":
            return self.engine.make_network(json.loads(body))
        if call.startswith("DELETE"):
            return self.engine.remove_network(call.rpartition("/")[2])
        return 200, self.engine.listed_networks(query, "Id", "Labels")

    def _pull(self, query: dict[str, str]) -> None:
        image = f"{query['fromImage']}@{query['tag']}"
        known = image in self.engine.registry
        lines = [{"status": "Pulling"}, {"status": "Done"} if known else {"error": f"manifest unknown: {image}"}]
        if known:
            self.engine.images.add(image)
        self._chunked([json.dumps(each).encode() + b"\r\n" for each in lines])

    def _logs(self, path: str) -> None:
        box = self.engine.box(path.split("/")[2])
        if box is None:
            self._send(404, json.dumps(said("No such container")).encode())
            return
        self._chunked([b"\1\0\0\0" + len(part).to_bytes(4, "big") + part for part in OUTPUT])

    def _chunked(self, parts: list[bytes]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in parts:
            self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
