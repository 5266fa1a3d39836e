"""A service that speaks the HTTP API from memory, over real sockets. Jobs settle as the tag `end` says.

Its misbehaviour is chosen by setting fields: lost replies, answers of a proxy, damaged bytes, broken downloads.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from penstock.domain.artifacts.volumes import PART_BYTES, composite
from tests.cli import account, alarms, artifacts, leases, published
from tests.cli.ids import older
from tests.cli.proof import Proof
from tests.cli.site_text import SiteText

TOKEN = "good-token"
BYTES = b"".join(b"line %d\n" % number for number in range(4000))
SUBMITTED, STARTED, SETTLED = "2026-01-01T10:00:00Z", "2026-01-01T10:01:00Z", "2026-01-01T10:02:30Z"
LOG = (
    ("control", "attempt 1 begins"),
    ("worker", "hello from host"),
    ("stdout", "building"),
    ("stderr", "a warning"),
    ("task", "task 0 is done"),
)
REASONS = {
    "failed": "the script ended with status 3",
    "cancelled": "cancelled by alice",
    "errored": "the machine was lost",
}


NEEDS = [{"name": "build", "job": "j0", "on": "success", "copy_outputs": True}]

FAILURE: dict[str, Any] = {
    "kind": "disk_full",
    "what": "a disk was full",
    "advice": "keep less",
    "evidence": {"exit_code": 3, "path": "/work", "free_bytes": 0, "bound_seconds": 90},
    "task": {"index": 0, "name": "build"},
    "lines": ["No space\x1b left on device"],
    "lines_of": "job",
}


COST: dict[str, Any] = {
    "job": "j1",
    "currency": "EUR",
    "is_final": False,
    "final_after": "2026-01-01T10:07:30Z",
    "total": "1.824330",
    "unused": "0.564000",
    "control": "0.000330",
    "worker": "0.064000",
    "resources": "1.760000",
    "stored": "0.000000",
    "sent": "0.000000",
    "charges": [
        {
            "name": "db", "type": "bench", "seconds": 2640.0, "unused_seconds": 840.0,
            "cost": "1.760000", "unused": "0.560000",
        },
        {
            "name": "worker", "type": "linux", "seconds": 1920.0, "unused_seconds": 120.0,
            "cost": "0.064000", "unused": "0.004000",
        },
    ],
}  # fmt: skip


SUMS: dict[str, Any] = {
    "items": [
        {
            "name": "ada", "currency": "EUR", "jobs": 3, "total": "12.500000", "unused": "2.000000",
            "control": "0.000330", "worker": "10.000000", "resources": "2.499670", "stored": "0.000000",
            "sent": "0.000000",
        }
    ],
    "next": None, "by": "owner", "since": "2026-01-01", "until": "2026-01-31", "is_counted": True, "budget": None,
}  # fmt: skip


REQUEST: dict[str, Any] = {
    "user": "alice", "privilege": "target.lab", "reason": "boards", "by": "alice", "since": SUBMITTED, "decided": None,
    "decided_by": None, "is_granted": False, "answer": None,
}  # fmt: skip


ENVELOPE: dict[str, Any] = {"payloadType": "application/vnd.in-toto+json", "payload": "e30=", "signatures": []}


@dataclass
class Job:
    """A job, how much of its log has been read so far, and how many looks at it still find it waiting."""

    id: str
    body: dict[str, Any]
    end: str
    read: int = 0
    waits: int = 0
    cancelled: bool = False
    log: Sequence[Mapping[str, Any]] | None = None
    looks: int | None = None
    log_gone: bool = False

    @property
    def settled(self) -> bool:
        """By itself when its log was read; or, if it counts its looks, after some of them."""
        over = self.read >= len(LOG) if self.looks is None else self.looks > self.waits + 2
        return self.cancelled or (self.end != "never" and over)

    @property
    def running(self) -> bool:
        return bool(self.read) if self.looks is None else self.looks > self.waits

    def is_of(self, set: str) -> bool:
        return bool(self.body.get("tags", {}).get("set") == set)

    def look(self) -> dict[str, Any]:
        """What somebody sees who looks at its state, which brings a job that counts its looks further."""
        if self.looks is not None:
            self.looks += 1
        return self.json()

    def json(self) -> dict[str, Any]:
        outcome = ("cancelled" if self.cancelled else self.end) if self.settled else None
        return {
            "id": self.id,
            "name": self.body.get("name", "hello"),
            "owner": "alice",
            "state": "settled" if self.settled else "running" if self.running else "queued",
            "outcome": outcome,
            "reason": REASONS.get(outcome or ""),
            "attempt": 1,
            "target": self.body.get("target", "default"),
            "target_resolved": "ubuntu-24.04",
            "resources": [{"name": "bench", "type": "bench", "state": "leased", "slot": "bench-1"}],
            "times": {
                "submitted": SUBMITTED,
                "ready": SUBMITTED,
                "acquired": STARTED if self.running else None,
                "started": STARTED if self.running else None,
                "settled": SETTLED if self.settled else None,
            },
            "worker": "w1",
            "exit_code": 3 if outcome == "failed" else None,
            "tags": self.body.get("tags", {}),
            "priority": 0,
            "timeout": 1800,
            "attempts": [],
            "failure": FAILURE if self.end == "failed" and self.settled else None,
            "outputs_gone": SETTLED if self.end == "gone" else None,
            "cache_scope": self.body.get("cache_scope", "trunk"),
            "cost": {name: COST[name] for name in ("total", "unused", "currency")} if self.settled else None,
        }


OTHERS = ("alarms", "audit", "graph", "resource-types", "provenance", "shares", "costs", "reviews", "sets")
"""What is read of the service that has no part of its own here."""


def _is_other(method: str, path: list[str]) -> bool:
    match method, path:
        case "GET", [what, *_]:
            return what in OTHERS or path == ["site", "stops"]
        case "DELETE", ["users" | "tokens", *_]:
            return True
        case _, ["users", _, "privileges", *_]:
            return True
        case "POST", ["site", _] | ["factories" | "wells", _, "disable" | "drain" | "enable"]:
            return True
    return False


@dataclass
class Service:
    """What the service knows, what it was asked, and how it misbehaves."""

    jobs: dict[str, Job] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    lose_replies: int = 0
    away: int = 0
    limited: int = 0
    crash: bool = False
    content: bytes = BYTES
    break_off: int = 0
    graph: dict[str, Any] = field(default_factory=lambda: GRAPH)
    walks: bool = False
    half_life: int | None = 86400
    account: account.Diffs = field(default_factory=account.Diffs)
    alarms: dict[str, Any] = field(default_factory=alarms.answer)
    stops: list[dict[str, Any]] = field(default_factory=list)
    leases: leases.Leases = field(default_factory=leases.Leases)
    queue: list[dict[str, Any]] = field(default_factory=list)
    worker: dict[str, Any] = field(default_factory=lambda: dict(WORKER))
    workers: list[dict[str, Any]] = field(default_factory=list)
    looks: int = 0
    consoles: list[dict[str, Any]] = field(default_factory=list)
    most_consoles: int = 9
    sent: dict[str, str] = field(default_factory=dict)
    composite: dict[str, str] = field(default_factory=dict)
    refuse_puts: int = 0
    puts: int = 0
    proof: Proof = field(default_factory=lambda: Proof(OUTPUT))
    site: SiteText = field(default_factory=SiteText)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, end: str = "succeeded", **body: Any) -> str:
        """A job that will settle in some way."""
        with self.lock:
            name = str(body.pop("id", f"j{len(self.jobs) + 1}"))
            self.jobs[name] = Job(name, body, end, looks=0 if self.walks else None)
            return name

    def paths(self, method: str) -> list[str]:
        """The paths that were asked for with a method, in order."""
        return [path for asked, path, _, _ in self.asked if asked == method]

    def answer(
        self, method: str, path: list[str], query: dict[str, list[str]], body: Any, key: str | None
    ) -> tuple[int, Any]:
        """Status and document for a request."""
        match method, path:
            case "POST", ["jobs"]:
                return (200, PLAN) if query.get("plan") == ["true"] else self._submit(body, key)
            case "GET", ["jobs"]:
                return 200, _page(older(self._listed(query), query), query)
            case _, ["jobs", job, *rest]:
                return self._of_job(method, job, rest, query, body)
            case _, ["workers", id, *rest] if id == "w1" or id.startswith("w-"):
                return self._worker(method, rest, query, body)
            case _, ["pools", *rest]:
                return self._pools(method, rest, body)
            case _ if _is_other(method, path):
                return 200, self._others(path, query)
            case _, ["targets" | "workers" | "factories", *_] | ["users", *_] | ["config"] | ["whoami"] | [
                "openapi.json"
            ]:
                return self._site(method, path, query, body)
        return self._apart(method, path, query, body)

    def _apart(self, method: str, path: list[str], query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        """What is answered by parts of their own."""
        if path[:2] == ["agent", "leases"]:
            return 200, self.leases.resources()
        if path[:1] == ["leases"]:
            return self.leases.answer(method, path[1:], body)
        if path[:1] == ["privileges"]:
            found = [REQUEST, REQUEST | {"decided": SETTLED, "is_granted": True}, REQUEST | {"decided": SETTLED}]
            return 200, REQUEST if method == "PUT" else {"items": found, "next": None}
        if path[:1] == ["account"]:
            return self.account.answer(method, path[1], query)
        if path and path[0] in ("published", "series"):
            return published.answer(self.url, method, path, query, body)
        return artifacts.answer(self.url, method, path, query)

    def _listed(self, query: dict[str, list[str]]) -> list[dict[str, Any]]:
        """The jobs that the filters leave, the newest first if it is a set."""
        tags = [tag.partition("=") for tag in query.get("tag", ())]
        jobs = [job for job in self.jobs.values() if all(job.body.get("tags", {}).get(a) == b for a, _, b in tags)]
        wanted = [job.look() if tags else job.json() for job in (jobs[::-1] if tags else jobs)]
        states = query.get("state")
        return [job for job in wanted if not states or job["state"] in states]

    def _others(self, path: list[str], query: dict[str, list[str]]) -> Any:
        match path:
            case ["provenance", "key"]:
                return {"keyid": "k", "pem": "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n"}
            case ["sets", id]:
                jobs = [job.json() | {"dependencies": NEEDS} for job in self.jobs.values() if job.is_of(id)]
                return {"set": id, "owner": "alice", **_page(jobs, query)}
            case ["reviews"]:
                return {"items": [REVIEW | {"job": "j1"}], "next": None}
            case ["alarms" | "costs" | "graph" | "site" | "factories" | "wells" as what, *_]:
                stops = {"items": self.stops, "next": None}
                return {"alarms": self.alarms, "costs": SUMS, "graph": self.graph}.get(what, stops)
            case ["shares"]:
                return {"items": SHARES if self.half_life else [], "next": None, "half_life": self.half_life}
            case ["tokens", id]:
                return {"id": id, "user": "alice", "state": "revoked"}
            case ["audit"]:
                return _page(AUDIT, query)
            case ["resource-types"]:
                return {"items": [{"name": name, "settings": {}} for name in OPTIONS], "next": None}
            case ["resource-types", name]:
                return {"name": name, "settings": {"well": "w"}, "options": OPTIONS[name]}
        user = {"name": path[1], "privileges": [], "created": STARTED}
        return user | {"stopped": ["j7"], "holding": ["j8", "j9"]}

    def _submit(self, body: Any, key: str | None) -> tuple[int, Any]:
        if body.get("target") == "nowhere":
            place = {"file": body["path"], "line": 2, "column": 4, "message": "no such target", "hint": "try default"}
            return 422, _problem(422, "unsatisfiable", "there is no target nowhere", [place, {"message": "no file"}])
        if key not in self.keys:
            self.keys[str(key)] = self.add(body.get("tags", {}).get("end", "succeeded"), **body)
        return 201, {"id": self.keys[str(key)]}

    def _of_job(
        self, method: str, job: str, rest: list[str], query: dict[str, list[str]], body: Any
    ) -> tuple[int, Any]:
        if job not in self.jobs:
            return 404, _problem(404, "job-not-found", f"there is no job {job} that you may see")
        if rest[:1] == ["inputs"]:
            return self._input(rest[1:], body) if body else (200, {"items": self._inputs(job)})
        return self._job(method, self.jobs[job], rest, query, body)

    def _input(self, rest: list[str], body: Any) -> tuple[int, Any]:
        name = body["name"]
        if rest == ["commit"]:
            return (200, {"items": []}) if self._has(name) else (409, _problem(409, "x", "nothing came"))
        if rest == ["parts"]:
            numbered = enumerate(body["sha256"], body["first"])
            return 200, {"parts": [self._leave(f"{name}.{at}", digest) | {"number": at} for at, digest in numbered]}
        self.composite[name] = body.get("composite", "")
        leave = self._leave(name, body["sha256"])
        return 200, leave | {"part_bytes": PART_BYTES if self.composite[name] else 0}

    def _inputs(self, job: str) -> list[dict[str, Any]]:
        return [{"name": name, "there": self._has(name)} for name in self.jobs[job].body.get("inputs", ())]

    def _leave(self, name: str, digest: str) -> dict[str, Any]:
        there = self.sent.get(name) == digest
        return {"there": there, "method": "PUT", "url": f"{self.url}/sent/{name}", "headers": {"x-kept": "1"}}

    def _has(self, name: str) -> bool:
        """Whether all of a file was sent, and the digest of its parts is what was said."""
        parts = sorted((int(key.rpartition(".")[2]), key) for key in self.sent if key.startswith(f"{name}."))
        sent = [self.sent[key] for _, key in parts]
        return composite(sent) == self.composite[name] if self.composite.get(name) else name in self.sent

    def _job(self, method: str, job: Job, rest: list[str], query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        match method, rest:
            case ("GET", []) | ("POST", ["extend"]):
                return 200, job.look()
            case "POST", ["cancel" | "discard" as what]:
                return self._end(job, what)
            case "POST", ["retry"]:
                return 201, {"id": self.add(job.end, **job.body)}
            case "GET", ["events"]:
                return self._read(job, query)
            case "GET", ["why"]:
                return 200, WHY | {"job": job.id}
            case "GET", ["outputs"]:
                return 200, {"items": [] if job.end == "gone" else [OUTPUT], "next": None}
            case "POST", ["outputs", "o1", "publish"]:
                return 200, published.FILE | body | {"job": "j1"}
            case "POST", ["outputs", "o1", "sign"]:
                return 200, {"url": f"{self.url}/bytes?secret=1", "size": OUTPUT["size"], "expires_in": 900}
            case _, ["timings" | "provenance" | "review" | "script" | "cost" as what]:
                by = None if method == "GET" else "alice"
                said = {"review": REVIEW | {"job": job.id, "by": by}, "script": _script(job), "cost": COST}
                return 200, {"timings": self._timings(job), "provenance": ENVELOPE, **said}[what]
        return 404, _problem(404, "no-such-path", "this service has no such thing")

    def _end(self, job: Job, what: str) -> tuple[int, Any]:
        """A job is cancelled, or what it made is discarded."""
        if what == "discard" and not job.settled:
            return 409, _problem(409, "job-goes-on", "cancel it first")
        job.cancelled = job.cancelled or what == "cancel"
        return 200, job.json()

    def _timings(self, job: Job) -> dict[str, Any]:
        spans = {"queued": 1.5, "acquiring": 58.5, "running": 90.0, "total": 150.0}
        return {"times": job.json()["times"], "intervals": spans, "held": HELD}

    def _read(self, job: Job, query: dict[str, list[str]]) -> tuple[int, Any]:
        """A page of a job's log."""
        if job.log_gone:
            return 410, _problem(410, "log-gone", "the log of this job is gone")
        length = len(LOG if job.log is None else job.log)
        after = max(int(query["after"][0]), length - int(query["last"][0]) if "last" in query else 0)
        if job.log is None:
            return 200, self._events(job, after)
        items = [{"seq": at, "attempt": 1, **event} for at, event in enumerate(job.log, 1)]
        return 200, self._answer(job, items[after : after + int(query.get("limit", ["500"])[0])], after)

    def _answer(self, job: Job, items: list[dict[str, Any]], after: int) -> dict[str, Any]:
        found = job.json()
        return {
            "items": items,
            "next": items[-1]["seq"] if items else after,
            "state": found["state"],
            "outcome": found["outcome"],
        }

    def _events(self, job: Job, after: int) -> dict[str, Any]:
        """Two more events each time; the state goes with them."""
        if job.waits and job.looks is None:
            job.waits -= 1
            return {"items": [], "next": after, "state": "queued", "outcome": None}
        shown = LOG[after : after + 2] if job.end != "never" else LOG[after:1]
        job.read = max(job.read, after + len(shown))
        items = [
            {"seq": after + at, "time": STARTED, "stream": stream, "task": None, "attempt": 1, "payload": payload}
            for at, (stream, payload) in enumerate(shown, 1)
        ]
        return self._answer(job, items, after)

    def _worker(self, method: str, rest: list[str], query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        match method, rest:
            case "GET", []:
                return 200, self.worker
            case "GET", ["events"]:
                self.worker["state"] = "gone" if self.looks else "ready"
                self.looks += 1
                after = int(query["after"][0])
                shown = [{"seq": at, **event} for at, event in enumerate(EVENTS[: 1 + self.looks], 1) if at > after]
                shown += [each for each in self.consoles if each["seq"] > after]
                return 200, {
                    "items": shown,
                    "next": shown[-1]["seq"] if shown else after,
                    "state": self.worker["state"],
                }
            case "POST", ["console"]:
                said = "console output, asked for by alice\ni-1 is running; end of its console:\n\x1b[31mlogin:"
                if len(self.consoles) < self.most_consoles:
                    self.consoles.append({"seq": 90 + len(self.consoles), "time": STARTED, "payload": said})
            case "POST", ["hold"]:
                self.proof.act("hold")
                self.worker["hold"] = {"by": "alice", "reason": body["reason"], "since": STARTED, "until": SETTLED}
            case "POST", ["release"]:
                self.proof.act("release")
                self.worker["hold"] = None
            case "POST", ["recycle"] if self.worker["hold"]:
                return 409, _problem(409, "held", "worker w1 is held by alice: release it first")
            case "POST", ["drain" | "recycle" as verb]:
                self.worker["drain"] = {"by": "alice", "reason": "", "since": STARTED, "at_once": verb == "recycle"}
        return 200, self.worker

    def _pools(self, method: str, path: list[str], body: Any) -> tuple[int, Any]:
        match method, path:
            case "GET", []:
                return 200, {"items": [POOL], "next": None}
            case "GET", ["resource", "bench"]:
                return 200, POOL | {"slots": SLOTS, "queue": self.queue}
            case "GET", ["resource", "bench", "series"]:
                return 200, {"pool": "resource/bench", "items": HOURS}
            case "PUT", ["resource", "bench", "limit"]:
                return 200, POOL | {"limit": body["limit"]}
            case "POST", ["resource", "bench", "pause" | "resume" as verb]:
                return 200, POOL | {"paused": verb == "pause"}
        return 404, _problem(404, "pool-not-found", "there is no such pool")

    def _site(self, method: str, path: list[str], query: dict[str, list[str]], body: Any) -> tuple[int, Any]:
        match method, path:
            case "GET", ["targets"]:
                return 200, {"items": TARGETS, "next": None}
            case "GET", ["targets", "default"]:
                return 200, TARGETS[0]
            case "GET", ["factories", "aws"]:
                return 200, FACTORY
            case "GET", ["workers"]:
                return 200, {"items": [self.worker] if self.worker["hold"] else self.workers, "next": None}
            case _, ["config"]:
                status, found = self.site.answer(method, query, body, self.asked[-1][2].get("If-Match"))
                return status, found or _problem(
                    status, "site-changed", "the configuration is not the one that you saw"
                )
            case "POST", ["users"]:
                return 403, _problem(403, "forbidden", "only an operator may create users")
            case "POST", ["users", name, "tokens"]:
                return 201, {"token": f"token-of-{name}", "expires": None, "id": "t1"}
            case "GET", ["whoami"]:
                return 200, {"name": "alice", "privileges": ["admin"]}
            case "GET", ["openapi.json"]:
                return 200, {"openapi": "3.1.0"}
        return 404, _problem(404, "no-such-path", f"there is no {'/'.join(path)} yet")

    url: str = ""


REVIEW = {
    "name": "deploy", "owner": "oxide:hubris", "environment": "production", "privileges": ["target.lab"],
    "reviewers": ["alice"], "logins": [], "until": SETTLED, "source": {"ref": "refs/heads/main"},
    "target": "lab", "resources": [], "inputs": ["data"], "env": {"LEVEL": "3"},
    "dependencies": [{"name": "build", "job": "j9", "on": "success", "copy_outputs": True}],
    "script": "#!/bin/bash\n./dep\x1bloy\n",
}  # fmt: skip
HELD = [{"attempt": 1, "name": "bench", "type": "bench", "seconds": 147.0, "unused_seconds": 57.0}]
WHY = {
    "state": "queued",
    "summary": "the job waits for bench: held are bench-1 by j9; position 2 in the queue",
    "blocked_on": {
        "pool": "resource/bench",
        "kind": "named",
        "position": 2,
        "ahead": [{"job": "j8", "since": SUBMITTED}],
        "held_by": [{"slot": "bench-1", "job": "j9", "since": SUBMITTED}],
        "limit": 1,
        "held": 1,
        "free": 0,
        "paused": False,
    },
    "waiting_for": "bench",
    "since": SUBMITTED,
    "expected_start": STARTED,
    "basis": "the last 12 holders of resource/bench kept it 4 min on average",
    "unblocks": "bench-1 is given back by j9; then bench-1 is given back by j8",
}
PLAN = {
    "target": "default",
    "target_resolved": "ubuntu-24.04",
    "steps": [
        {"step": 1, "acquires": [{"pool": "resource/bench", "type": "bench", "count": 1}]},
        {"step": 2, "acquires": [{"pool": "target/ubuntu-24.04", "type": "ubuntu-24.04", "count": 1}]},
    ],
    "privileges": ["resource.bench"],
    "would_wait": True,
    "waits_for": [{"pool": "resource/bench", "position": 3, "expected_seconds": 240.0, "basis": "a guess"}],
    "expected_seconds": 240.0,
    "sentences": ["the job would acquire first bench, then a worker of ubuntu-24.04", "it could start in about 4 min"],
}
DEED = {"id": "1", "time": STARTED, "by": "root", "did": "hold", "what": "worker w1", "detail": "for 60 s: a look"}
AUDIT = [DEED, DEED | {"id": "2", "by": "ann"}]
VERSION = {"name": "version", "kind": "string", "meaning": "of the server", "default": "16", "allowed": ["15", "16"]}
OPTIONS = {"database": [VERSION], "bench": [], "strange": None}
WORKER = {
    "id": "w1", "target": "lab", "factory": "here", "state": "ready", "job": "j9", "attempt": 1, "since": SUBMITTED,
    "due": None, "reason": None, "leases": 1, "hold": None, "drain": None, "next_step": "its job ends",
}  # fmt: skip
EVENTS = [
    {"time": SUBMITTED, "stream": "control", "payload": "ordered from here for job j9, attempt 1"},
    {"time": STARTED, "stream": "control", "payload": "its agent said hello"},
    {"time": SETTLED, "stream": "control", "payload": "destroyed"},
]
GRAPH = {
    "nodes": [
        {"id": "resource/bench", "kind": "pool", "label": 'resource/bench: "1\\1" held'},
        {"id": "j8", "kind": "job", "label": "job\nj8"},
    ],
    "edges": [
        {"from": "resource/bench", "to": "j8", "kind": "holds"},
        {"from": "j8", "to": "resource/bench", "kind": "waits"},
    ],
    "cycle": [],
    "left_out": 0,
}
HOURS = [
    {
        "start": STARTED,
        "seconds": 3600.0,
        "limit": 2,
        "mean": {"held": 1.26, "idle": 0.5, "waiting": 0.0},
        "most": {"held": 2.0, "idle": 1.0, "waiting": 3.0},
    }
]

POOL = {
    "pool": "resource/bench",
    "kind": "named",
    "limit": 1,
    "held": 1,
    "free": 0,
    "waiting": 1,
    "paused": False,
}
SHARES = [
    {"owner": "alice", "weight": 1, "entitled": 0.25, "used": 0.9, "used_seconds": 5400},
    {"owner": "oxide:hubris", "weight": 3, "entitled": 0.75, "used": 0.1, "used_seconds": 600},
]
SLOTS = [{"slot": "bench-1", "state": "held", "job": "j9", "attempt": 1, "since": SUBMITTED, "fence": 3, "unit": None}]
TARGETS = [
    {"name": "default", "settings": {"redirect": "lab", "limit": 0, "factory": ""}},
    {"name": "lab", "settings": {"factory": "here", "limit": 4, "redirect": None}},
    {"name": "closed", "settings": {"factory": "aws", "limit": 4, "redirect": None}},
    {"name": "big", "settings": {"factory": "aws", "limit": 4, "redirect": None}},
]
FACTORY = {
    "name": "aws",
    "settings": {"driver": "ec2", "settings": {"region": "eu-west-1"}, "rate": 2},
    "cooling": [
        {
            "scope": "ec2/eu-west-1/spot/m6i.large/eu-west-1a",
            "cause": "capacity",
            "why": "InsufficientInstanceCapacity",
            "since": SUBMITTED,
            "until": SETTLED,
            "tried": 4,
            "probe": "w-7",
            "summary": "factory aws: no capacity",
        }
    ],
    "failures": [{"code": "Unknown:Odd", "count": 3, "message": "it broke", "first": SUBMITTED, "last": SETTLED}],
    "compared": {
        "at": SETTLED, "seconds_ago": 90, "failures": 2, "why": "RateLimited: slow", "strays": ["w-9"], "missing": [],
    },
}  # fmt: skip
OUTPUT = {
    "id": "o1",
    "path": "/work/out/log.txt",
    "size": len(BYTES),
    "sha256": hashlib.sha256(BYTES).hexdigest(),
    "time": SETTLED,
}


def _script(job: Job) -> dict[str, Any]:
    """What a job was submitted with."""
    tasks = job.body.get("tasks", [])
    return {"job": job.id, "script": None if tasks else job.body.get("script"), "tasks": tasks}


def _page(items: list[Any], query: dict[str, list[str]]) -> dict[str, Any]:
    start, size = int(query.get("page", ["0"])[0]), int(query.get("limit", ["50"])[0])
    end = start + size
    return {"items": items[start:end], "next": str(end) if end < len(items) else None}


def _problem(status: int, code: str, detail: str, errors: list[Any] | None = None) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": code,
        "status": status,
        "code": code,
        "detail": detail,
        "errors": errors or [],
    }


class Handler(BaseHTTPRequestHandler):
    """Puts a Service on a socket."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for the acknowledgement of its head
    service: Service

    def _any(self) -> None:
        service = self.service
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        if parts.path.startswith("/sent/"):
            self._sent(parts.path.removeprefix("/sent/"), self.rfile.read(length))
            return
        body = json.loads(self.rfile.read(length)) if length else None
        service.asked.append((self.command, self.path, dict(self.headers), body))
        if parts.path == "/bytes":
            self._bytes()
            return
        if self._misbehaves():
            return
        path = unquote(parts.path.removeprefix("/v1/")).split("/")
        if path != ["openapi.json"] and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._send(401, _problem(401, "unauthorized", "the token is not known"))
            return
        status, document = service.proof.answer(self.command, path, body, service.url) or service.answer(
            self.command, path, parse_qs(parts.query), body, self.headers.get("Idempotency-Key")
        )
        if service.lose_replies and self.command == "POST":
            service.lose_replies -= 1
            self.close_connection = True
            return
        self._send(status, document)

    do_GET = do_POST = do_PUT = do_DELETE = _any

    def _sent(self, name: str, data: bytes) -> None:
        """An input that arrives where bytes are kept."""
        self.service.puts += 1
        if self.service.refuse_puts or self.headers["x-kept"] != "1":
            self.service.refuse_puts -= 1
            self._send(403, {"message": "Expired"})
        else:
            self.service.sent[name] = hashlib.sha256(data).hexdigest()
            self._send(200, {})

    def _misbehaves(self) -> bool:
        service = self.service
        if service.crash:
            self._send(500, _problem(500, "internal", "something broke; it is reported"))
        elif service.away:
            service.away -= 1
            self._send(503, {"message": "Service Unavailable"})
        elif service.limited:
            service.limited -= 1
            self._send(429, _problem(429, "too-many-requests", "slow down"), {"Retry-After": "1"})
        else:
            return False
        return True

    def _bytes(self) -> None:
        """Part or all of the content; breaks off in the middle when told to."""
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        data = self.service.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.service.break_off:
            self.service.break_off -= 1
            data = data[: len(data) // 2]
            self.close_connection = True
        self.wfile.write(data)

    def _send(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/problem+json" if status >= 400 else "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return None


def serve(service: Service, port: int = 0) -> ThreadingHTTPServer:
    """Start answering; the caller shuts the server down."""
    handler = type("BoundHandler", (Handler,), {"service": service})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


if __name__ == "__main__":
    import time

    shown = Service()
    serve(shown, 8765)
    print(f"PENSTOCK_URL={shown.url} PENSTOCK_TOKEN={TOKEN}", flush=True)
    time.sleep(3600)
