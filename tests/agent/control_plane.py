"""A real HTTP server that speaks the service's side of the agent API, and misbehaves when told to."""

import hashlib
import json
import os
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORKER, KEY, JOB = f"worker-{os.getpid()}", "bootstrap-key-of-the-worker", "job-1"  # agents end strays by worker
IDENTITY = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ1c2VyOmFkYSJ9.c2lnbmF0dXJlLW9mLWEtdG9rZW4"
PATIENCE_SECONDS = 60.0

ONE_STREAM = "exec 2>&1"
"""Begins a script whose lines are compared in order: two pipes have no order, if their reader finds both full."""

IDLE = {"idle": True, "seconds": 0.05, "lease_seconds": 60}
"""The answer to the hello of an agent that is to wait for its next job."""

Misbehave = Callable[[str, int], Any]
"""Given an endpoint and which call of it this is (from 1), returns None (behave), a status to answer with,
"drop" (close without having done it) or "forget" (do it, then close without an answer)."""


def order(**changes: Any) -> dict[str, Any]:
    """Return an answer to hello with short intervals; `script` stands for one task."""
    script = changes.pop("script", "true")
    limits = {
        "output_bytes": 1 << 20,
        "part_bytes": 1 << 26,
        "cache_bytes": 1 << 20,
        "outputs": 20,
        "line_bytes": 4096,
        "batch_bytes": 65536,
        "batch_events": 100,
    }
    limits.update(changes.pop("limits", {}))
    return {
        **{
            "job": JOB,
            "name": "test",
            "attempt": 2,
            "fence": 7,
            "target": "here",
            "owner": "ann",
            "worker": WORKER,
        },
        "factory": "local",
        "tasks": [{"name": "build", "script": script, "env": {}, "env_clear": False, "workdir": None}],
        **{"output_rules": [], "resources": {}, "env": {}, "deadline": "2030-01-01T00:00:00Z"},
        **{"timeout_seconds": 60, "grace_seconds": 1, "heartbeat_seconds": 0.2, "lease_seconds": 60},
        "limits": limits,
        **changes,
    }


class ControlPlane:
    """What the service has been told. All of it is guarded by `changed`."""

    def __init__(
        self, reply: dict[str, Any], misbehave: Misbehave = lambda endpoint, count: None, host: str = "127.0.0.1"
    ) -> None:
        self.reply, self.misbehave = reply, misbehave
        self.changed = threading.Condition()
        self.calls: list[str] = []
        self.hellos: list[dict[str, Any]] = []
        self.token: str | None = None
        self.events: dict[int, dict[str, Any]] = {}
        self.uploads: dict[str, dict[str, Any]] = {}
        self.finishes: list[dict[str, Any]] = []
        self.cancel = False
        self.more: dict[str, Any] = {}  # what answers to the agent say besides
        self.room: int | None = None  # for how many lines of output the log has room
        self.fresh: dict[str, Any] = {}
        self.inputs: list[dict[str, Any]] = []
        self.kept: dict[str, bytes] = {}
        self.arrived: dict[tuple[str, int], bytes] = {}
        self.page = 100
        self.store: dict[str, tuple[str, bool]] = {}
        self.ranges: list[str | None] = []
        self.caches: dict[str, dict[str, Any]] = {}
        self._server = ThreadingHTTPServer((host, 0), type("Bound", (Handler,), {"plane": self}))
        self._server.daemon_threads = True
        self.url = f"http://{host}:{self._server.server_address[1]}"

    def __enter__(self) -> "ControlPlane":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait_for(self, what: Callable[[], Any]) -> Any:
        """Wait until something is true of what the service was told, and return it."""
        with self.changed:
            found = self.changed.wait_for(what, PATIENCE_SECONDS)
            assert found, (self.lines(), self.calls[-20:])
            return found

    def wait_for_line(self, text: str) -> None:
        self.wait_for(lambda: text in self.lines("stdout"))

    def lines(self, *streams: str) -> list[str]:
        """Return the payloads of all events, or of some streams, in order."""
        events = [self.events[number] for number in sorted(self.events)]
        return [event["payload"] for event in events if not streams or event["stream"] in streams]

    def outputs(self) -> dict[str, bytes]:
        """Return what was uploaded and committed, by path."""
        return {u["path"]: u["data"] for u in self.uploads.values() if u.get("committed")}

    def answer(self, endpoint: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Do what a call asks for; return status and reply."""
        return getattr(self, f"_{endpoint}")(body)

    def token_for(self, endpoint: str) -> str | None:
        """Return the token that a call must show."""
        return self.token

    def _hello(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.hellos.append(body)
        if body["key"] != KEY:
            return 401, {"detail": "wrong key"}
        if self.token not in (None, body["token"]):
            return 409, {"detail": "another token is in use"}
        self.token = body["token"]
        return 200, self.reply

    def answer_next_hellos(self, *answers: Any) -> None:
        """Answer the hellos after the first job with these: a reply, or a status to refuse with. The last one stays."""
        first, left = self._hello, list(answers)

        def hello(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            if "previous" not in body:
                return first(body)
            self.hellos.append(body)
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, int):
                return answer, {"detail": "no longer wanted"}
            if "job" in answer:
                self.token, self.reply = body["token"], answer
                self.events.clear()
            return 200, answer

        self._hello = hello  # type: ignore[method-assign]

    def _events(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        for number, event in enumerate(body["events"], body["first"]):
            assert number <= len(self.events) + 1, "a gap"
            assert self.events.setdefault(number, event) == event, "two events with one number"
        return 200, {"cancel": self.cancel, "watched": True, **self.more, **self._full()}

    def _full(self) -> dict[str, Any]:
        """Say what of the output found no room, if some did not."""
        output = self.lines("stdout", "stderr") if self.room is not None else []
        lost = output[self.room :]
        return {"full": {"lines": len(lost), "bytes": sum(map(len, lost))}} if lost else {}

    def _heartbeat(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, {"cancel": self.cancel, "watched": True, **self.more, "lease_seconds": self.reply["lease_seconds"]}

    def _resources(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return 200, {"resources": self.fresh}

    def _get(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        found = self.store.get(body["name"])
        return 200, {"there": True, "value": found[0], "secret": found[1]} if found else {"there": False}

    def _put(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "/" in body["name"]:
            return 400, {"detail": "that is no name"}
        self.store[body["name"]] = (body["value"], body["secret"])
        return 200, {}

    def _identity(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if body["audience"] != "sts.amazonaws.com":
            return 422, {"detail": "this site allows no such audience"}
        return 200, {"token": IDENTITY, "expires": "2026-01-01T01:00:00+00:00"}

    def keep(self, path: str, data: bytes, **wrong: Any) -> None:
        """Keep an input for the job; `wrong` is what is said of it that is not so."""
        id_ = f"i{len(self.inputs) + 1}"
        self.kept[id_] = data
        told = {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        self.inputs.append({**told, "url": f"{self.url}/kept/{id_}?signature=s", **wrong})

    def _inputs(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        start = int(body["after"] or 0)
        end = start + self.page
        return 200, {"inputs": self.inputs[start:end], "next": str(end) if end < len(self.inputs) else None}

    def _outputs(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        uploads = []
        for file in body["files"]:
            begun = (id_ for id_, each in self.uploads.items() if "committed" not in each and each == {**each, **file})
            id_ = next(begun, f"o{len(self.uploads) + 1}")
            self.uploads.setdefault(id_, dict(file))
            url = f"{self.url}/store/{id_}?signature=s"
            told = {"id": id_, "path": file["path"], "url": url, "method": "PUT", "headers": {"x-kept": "1"}}
            uploads.append({**told, "part_bytes": self.reply["limits"]["part_bytes"] if file["composite"] else 0})
        return 200, {"uploads": uploads}

    def _parts(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Leave for each part that has not arrived with that digest; `arrived` has them by file and number."""
        told = []
        for number, digest in enumerate(body["sha256"], body["first"]):
            data = self.arrived.get((body["id"], number))
            there = data is not None and hashlib.sha256(data).hexdigest() == digest
            url = f"{self.url}/store/{body['id']}.{number}?signature=s"
            told.append({"number": number, "there": there, "url": url, "method": "PUT", "headers": {"x-kept": "1"}})
        return 200, {"parts": told}

    def _join(self, id_: str) -> bool:
        """Put the parts of a file together, as the service does when it is told that all were sent."""
        mine = [self.arrived[key] for key in sorted(key for key in self.arrived if key[0] == id_)]
        digests = b"".join(hashlib.sha256(data).digest() for data in mine)
        if hashlib.sha256(digests).hexdigest() != self.uploads[id_]["composite"]:
            return False
        self.uploads[id_]["data"] = b"".join(mine)
        return True

    def _find(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The entry with the key, else the newest with a restore key; all are in one scope."""
        shelf = [one for one in self.caches.values() if (one["name"], one["paths"]) == (body["name"], body["paths"])]
        exact = [one for one in shelf if one["key"] == body["key"]]
        near = [one for each in body["restore_keys"] for one in shelf[::-1] if one["key"].startswith(each)]
        for one in (exact or near)[:1]:
            url = f"{self.url}/kept/{one['id']}?signature=s"
            return 200, {"hit": True, "exact": bool(exact), **one, "url": url}
        return 200, {"hit": False}

    def _save(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        id_ = f"c{len(self.uploads) + 1}"
        about = {name: body[name] for name in ("size", "sha256", "composite")}
        self.uploads[id_] = {"path": body["name"], **about}
        url = f"{self.url}/store/{id_}?signature=s"
        told = {"there": False, "id": id_, "url": url, "method": "PUT", "headers": {"x-kept": "1"}}
        return 200, {**told, "part_bytes": self.reply["limits"]["part_bytes"] if body["composite"] else 0}

    def _keep_cache(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        sent = self.uploads[body["id"]]
        if sent["composite"] and not self._join(body["id"]):
            return 409, {"detail": "not all of it has arrived"}
        for one in self.caches.values():
            if (one["name"], one["paths"], one["key"]) == (body["name"], body["paths"], body["key"]):
                return 200, {"kept": False, "id": one["id"], "scope": one["scope"]}
        self.caches[body["id"]] = {**body, "scope": "trunk", "size": sent["size"], "sha256": sent["sha256"]}
        self.kept[body["id"]] = sent["data"]
        return 200, {"kept": True, "id": body["id"], "scope": "trunk"}

    def _commit(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "id" in body:
            return self._keep_cache(body)
        for id_ in body["ids"]:
            if self.uploads[id_]["composite"] and not self._join(id_):
                return 409, {"detail": "not all of it has arrived"}
            self.uploads[id_]["committed"] = True
        return 200, {}

    def _finish(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        status, answer = self._commit({"ids": body.get("outputs", [])})
        if status == 200:
            self.finishes.append(body)
        return status, answer

    def put(self, id_: str, data: bytes) -> None:
        name, _, number = id_.partition(".")
        if number:
            self.arrived[name, int(number)] = data
        else:
            self.uploads[id_]["data"] = data


class Handler(BaseHTTPRequestHandler):
    """One call; `plane` is set by the subclass that a control plane makes for itself."""

    plane: ControlPlane

    def do_POST(self) -> None:
        self.serve(self.path.rpartition("/")[2])

    def do_GET(self) -> None:
        """Bytes that are kept. A number as misbehaviour is a status, unless negative: then so many bytes less come."""
        with self.plane.changed:
            self.plane.calls.append("kept")
            fault = self.plane.misbehave("kept", self.plane.calls.count("kept"))
            data = self.plane.kept[self.path.split("/")[2].split("?")[0]]
            wanted = self.headers["Range"]
            self.plane.ranges.append(wanted)
            self.plane.changed.notify_all()
        if isinstance(fault, int) and fault > 0:
            self.reply(fault, {"detail": "as the test wants"})
        elif fault != "drop":
            part = data[int(wanted[6:-1]) :] if wanted and fault != "whole" else data
            self.send_response(206 if wanted and fault != "whole" else 200)
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            self.wfile.write(part[:fault] if isinstance(fault, int) else part)

    def do_PUT(self) -> None:
        self.serve("store")

    def serve(self, endpoint: str) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        with self.plane.changed:
            self.plane.calls.append(endpoint)
            fault = self.plane.misbehave(endpoint, self.plane.calls.count(endpoint))
            if isinstance(fault, int):
                status, reply = fault, {"detail": "as the test wants"}
            elif fault != "drop":
                status, reply = self.work(endpoint, data)
            self.plane.changed.notify_all()
        if fault not in ("drop", "forget"):
            self.reply(status, reply)

    def work(self, endpoint: str, data: bytes) -> tuple[int, dict[str, Any]]:
        if endpoint == "store":
            assert self.headers["x-kept"] == "1"
            self.plane.put(self.path.split("/")[2].split("?")[0], data)
            return 200, {}
        if endpoint != "hello" and self.headers["Authorization"] != f"Bearer {self.plane.token_for(endpoint)}":
            return 401, {"detail": "unknown token"}
        return self.plane.answer(endpoint, json.loads(data))

    def reply(self, status: int, reply: dict[str, Any]) -> None:
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        pass
