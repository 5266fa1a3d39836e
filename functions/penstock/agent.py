#!/usr/bin/env python3
"""The agent: the one program of Penstock that runs on a worker. One file, standard library only, Python 3.9+.

The life of an agent (`agent.py run --config FILE`):

1. It reads who it is (worker id, bootstrap key), chooses its worker token, and keeps the token beside FILE.
2. It says hello, again and again until it is answered; a lost answer is safe to ask for twice, because the
   token is the same. The answer is its one job. It leaves a marker, so that no restart runs the job twice.
3. It runs the job's tasks, one bash script after the other, until one fails. Meanwhile four threads help:
   the pump reads the task's output, the outbox delivers it in order, the pulse renews the lease, and the
   clock watches for the timeout and for a lease that can't be renewed. They talk through `Control`.
4. However the tasks ended, it uploads what the output rules name, delivers every event, and says how it went.
5. It exits. 0: done, or no longer wanted. 1: the worker must be counted as lost; its log says why.

What stops the work early: a cancel or the timeout (then step 4 still happens), a lost lease (then one try of
uploading, and no report: the next attempt may start soon), the service's 410 or a SIGTERM (then nothing).

The same file is `bmat`, the command that scripts use to ask about their job. It asks the agent over a socket.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import ctypes
import datetime
import fnmatch
import hashlib
import http.client
import ipaddress
import json
import locale
import os
import pwd
import random
import re
import secrets
import selectors
import shlex
import signal
import socket
import socketserver
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import deque
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Callable, Iterable, Iterator, List, Optional, Tuple
from urllib.parse import urlsplit

VERSION = "0.1.0"
CALL_SECONDS = 15.0  # connecting, and each wait for bytes, of a call to the service
STORE_SECONDS = 120.0  # the same for storage, which checks a whole file before it answers
BACKOFF_CAP_SECONDS = 15.0
HELLO_TRIES = 200  # about 50 minutes: whoever made this machine has given up on it by then
PUT_TRIES = 8
UPLOAD_ROUNDS = 3  # a fresh URL for what was refused (it may have expired), a fresh hash for what has changed
UPLOAD_BATCH = 50
DANGER_ZONE = 0.2  # the last part of a lease, kept for stopping the work in
PIPE_SECONDS = 5.0  # how long after its exit a task's pipes may stay open
PIPE_BYTES = 4 << 20  # what is still read from pipes that strays hold open
BASE_PATH = "/usr/bin:/bin:/usr/sbin:/sbin:/opt/ooce/bin:/opt/ooce/sbin"

# Why the work is stopped (outputs and a report follow) ...
CANCELLED, TIMED_OUT = "cancelled", "timed_out"
# ... or abandoned (no report follows).
LOST, GONE, REFUSED, TERMINATED, BROKEN = "lost", "gone", "refused", "terminated", "broken"
ABANDONED_BECAUSE = {
    LOST: "the lease could not be renewed",
    GONE: "the service says that this worker is no longer wanted",
    REFUSED: "the service refused this worker",
    TERMINATED: "the agent was told to terminate",
    BROKEN: "the agent has a bug (see above)",
}


def log(message: str) -> None:
    """Write a line for whoever runs the machine; users see events instead."""
    print(f"{utc_now()} {message}", file=sys.stderr, flush=True)


def utc_now() -> str:
    """Return the wall-clock time, RFC 3339 in UTC with milliseconds."""
    time_ = datetime.datetime.now(datetime.timezone.utc)
    return time_.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> float:
    """Return seconds on a clock that never jumps and, on Linux, goes on while the machine sleeps."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def duration(seconds: float) -> str:
    """Say seconds as people do: `30m`, `1h5m`, `2.5s`."""
    whole, parts = int(seconds), ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            parts += f"{whole // size}{unit}"
            whole %= size
            seconds = whole
    return parts if parts and not seconds else f"{parts}{seconds:g}s"


def size_text(count: float) -> str:
    """Say a number of bytes as people do: `12.3 KiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.1f} {unit}" if unit != "B" else f"{count:.0f} B"
        count /= 1024
    return f"{count:.1f} GiB"


def signal_name(number: int) -> str:
    """Return `9 (SIGKILL)` for 9."""
    with contextlib.suppress(ValueError):
        return f"{number} ({signal.Signals(number).name})"
    return str(number)


# --- What the agent is told -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """Who this agent is. Raises OSError, ValueError or KeyError for a file that can't be used."""

    url: str
    worker: str
    key: str = field(repr=False)
    root: str
    folder: Path

    @classmethod
    def load(cls, path: Path) -> Config:
        data = json.loads(path.read_text(encoding="utf-8"))
        root = os.path.realpath(data.get("root", "/"))
        return cls(data["url"].rstrip("/"), data["worker"], data["key"], root, path.resolve().parent)

    def token(self) -> str:
        """Return the worker token; chosen once, so that a hello whose answer was lost can be repeated."""
        path = self.folder / "token"
        if path.exists():
            return path.read_text(encoding="ascii").strip()
        token, draft = secrets.token_urlsafe(48), self.folder / "token.new"
        draft.unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(token)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        return token

    @property
    def marker(self) -> Path:
        """The file that says how far this agent has come with its job."""
        return self.folder / "progress"


@dataclass(frozen=True)
class Task:
    """One script of the job."""

    index: int
    name: str
    script: str
    env: dict[str, str]
    env_clear: bool
    workdir: str

    def __str__(self) -> str:
        return f'task {self.index} "{self.name}"'


@dataclass(frozen=True)
class Order:
    """The job, as the answer to hello has it. Durations are in seconds."""

    reply: dict[str, Any] = field(repr=False)
    job: str
    tasks: List[Task]
    rules: List[Rule]
    env: dict[str, str] = field(repr=False)
    timeout: float
    heartbeat: float
    limits: dict[str, int]

    @classmethod
    def read(cls, reply: dict[str, Any]) -> Order:
        tasks = [
            Task(
                i,
                t["name"],
                t["script"],
                t.get("env") or {},
                bool(t.get("env_clear")),
                t.get("workdir") or "/work",
            )
            for i, t in enumerate(reply["tasks"])
        ]
        rules = [Rule.parse(rule) for rule in reply["output_rules"]]
        timeout, heartbeat = float(reply["timeout_seconds"]), float(reply["heartbeat_seconds"])
        return cls(reply, reply["job"], tasks, rules, reply.get("env") or {}, timeout, heartbeat, reply["limits"])


@dataclass(frozen=True)
class Places:
    """Where things are. On a machine of its own `root` is `/`; else job paths are looked up below `root`."""

    root: str

    @property
    def private(self) -> bool:
        return self.root != "/"

    def on_machine(self, path: str) -> str:
        """Return where a job's absolute path really is; `..` can't leave the root."""
        return os.path.join(self.root, os.path.normpath("/" + path).lstrip("/"))

    def in_job(self, path: str) -> str:
        """Return the name that the job knows a path of the machine by."""
        return path[len(self.root) :] if self.private else path

    def holds(self, path: str) -> bool:
        """Tell whether a path, its symlinks followed, is below the root."""
        return os.path.realpath(path).startswith(self.root.rstrip("/") + "/")

    @property
    def home(self) -> str:
        return self.on_machine("/home") if self.private else pwd.getpwuid(os.getuid()).pw_dir

    @property
    def bin(self) -> str:
        return self.on_machine("/bin" if self.private else "/usr/local/bin")

    def make(self) -> None:
        """Make the job's directories."""
        for path in (*map(self.on_machine, ("/work", "/input", "/tmp")), self.home, self.bin):
            os.makedirs(path, mode=0o755, exist_ok=True)


# --- What the threads tell each other ---------------------------------------------------------------------


class Control:
    """Whether the work goes on: wishes from outside, the lease, the timeout. Shared by all threads."""

    def __init__(self) -> None:
        self.stopped = ""  # CANCELLED or TIMED_OUT; the first one counts
        self.abandoned = ""  # LOST, GONE, ...; the first one counts
        self.watched = True  # whether somebody is looking at the job's output
        self.deadline: Optional[float] = None
        self._lease, self._grace = 0.0, 0.0
        self._renewed: Optional[float] = None
        self._changed = threading.Condition()

    def hear(self, reply: dict[str, Any], asked: float) -> None:
        """Take in an answer that gives or renews the lease, counted from the question, not the answer."""
        self._lease = float(reply.get("lease_seconds", self._lease))
        self._grace = float(reply.get("grace_seconds", self._grace))
        self._renewed = max(asked, self._renewed or asked)
        self.watched = bool(reply.get("watched", self.watched))
        if reply.get("cancel"):
            self.stop(CANCELLED)

    def stop(self, why: str) -> None:
        with self._changed:
            self.stopped = self.stopped or why
            self._changed.notify_all()

    def abandon(self, why: str) -> None:
        with self._changed:
            if not self.abandoned:
                log(f"abandoning the work: {ABANDONED_BECAUSE[why]}")
            self.abandoned = self.abandoned or why
            self._changed.notify_all()

    @property
    def stopping(self) -> bool:
        return bool(self.stopped or self.abandoned)

    @property
    def silent(self) -> bool:
        """Whether nothing may be sent any more. A lost lease still allows one try."""
        return self.abandoned not in ("", LOST)

    def grace(self) -> float:
        """Return how many seconds processes have between TERM and KILL."""
        if self.abandoned == LOST:  # all must be dead before the lease is over
            return min(self._grace, self._lease * DANGER_ZONE * 0.75)
        return min(self._grace, 2.0) if self.abandoned else self._grace

    def sleep(self, seconds: float) -> bool:
        """Sleep, but not when abandoned. Return whether the work is still ours."""
        until = now() + seconds
        with self._changed:
            while not self.abandoned and now() < until:
                self._changed.wait(min(until - now(), 1.0))
        return not self.abandoned

    def watch_clock(self) -> None:
        """Stop the work at its timeout, abandon it when the lease can't be renewed. Runs as a thread.

        Keeps JOB-2 on this side: the work is dead before the lease is over, and with it the right to work.
        """
        while self.sleep(0.2):
            deadline, renewed = self.deadline, self._renewed
            if deadline is not None and now() >= deadline:
                self.stop(TIMED_OUT)
            if renewed is not None and now() >= renewed + self._lease * (1 - DANGER_ZONE):
                self.abandon(LOST)

    def thread(self, name: str, work: Callable[[], None]) -> threading.Thread:
        """Start a helper. When it fails by a bug, the work is abandoned: better lost than hanging."""

        def guarded() -> None:
            try:
                work()
            except ServiceError as why:
                log(f"{name} ends: {why}")
            except Exception:
                log(f"{name} failed:\n{traceback.format_exc()}")
                self.abandon(BROKEN)

        thread = threading.Thread(target=guarded, name=name, daemon=True)
        thread.start()
        return thread


# --- The service ------------------------------------------------------------------------------------------


class ServiceError(Exception):
    """A call to the service did not succeed."""


class Unreachable(ServiceError):
    """No answer, or one that says try again: the only error that is retried."""


class Refused(ServiceError):
    """The service answered that this will never work."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(f"HTTP {status}: {detail}" if detail else f"HTTP {status}")
        self.status = status


class Abandoned(ServiceError):
    """The work was abandoned, so nothing is sent."""


def exchange(method: str, url: str, body: Any, headers: dict[str, str], timeout: float) -> Tuple[int, bytes]:
    """Send one HTTP request, its body bytes or a readable; return status and body. Raises Unreachable."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout, blocksize=1 << 16)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.connect()
        # Whoever refuses a big body may answer and close before having read it all.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, target, body, {"User-Agent": f"penstock-agent/{VERSION}", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read(16 << 20)
    except (OSError, http.client.HTTPException) as why:
        raise Unreachable(f"{parts.hostname}: {type(why).__name__}: {why}") from why
    finally:
        connection.close()


def transient(status: int) -> bool:
    """Tell whether an HTTP status means: the same again, later."""
    return status >= 500 or status in (408, 429)


def backoffs() -> Iterator[float]:
    """Yield seconds to wait between tries: exponential with jitter, capped."""
    delay = 0.25
    while True:
        yield delay * random.uniform(0.5, 1.0)
        delay = min(delay * 2, BACKOFF_CAP_SECONDS)


class Service:
    """The agent's side of the agent API."""

    def __init__(self, url: str, token: str, control: Control) -> None:
        self._url, self._token, self._control = url, token, control

    def call(self, path: str, body: dict[str, Any], tries: int = 0, renews: bool = False) -> dict[str, Any]:
        """POST until answered, or `tries` times; once when the lease is lost. Raises ServiceError."""
        for attempt, delay in enumerate(backoffs(), 1):
            if self._control.silent:
                raise Abandoned(ABANDONED_BECAUSE[self._control.abandoned])
            asked = now()
            try:
                reply = self._post(path, body)
            except Unreachable as why:
                log(f"{path}: try {attempt}: {why}")
                if attempt == tries or not self._control.sleep(delay):
                    raise
                continue
            if renews:
                self._control.hear(reply, asked)
            return reply
        raise AssertionError("backoffs never end")

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if path != "/v1/agent/hello":
            headers["Authorization"] = f"Bearer {self._token}"
        data = json.dumps(body).encode()
        status, answer = exchange("POST", self._url + path, data, headers, CALL_SECONDS)
        if transient(status):
            raise Unreachable(f"HTTP {status}")
        try:
            reply = json.loads(answer or b"{}")
        except ValueError as why:
            reply = {}
            if status < 300:  # something between us and the service speaks for it
                raise Unreachable(f"HTTP {status} with a body that is not JSON") from why
        if status >= 300:
            self._refuse(status, str(reply.get("detail", "")) if isinstance(reply, dict) else "")
        return reply if isinstance(reply, dict) else {}

    def _refuse(self, status: int, detail: str) -> None:
        if status in (401, 403, 410):
            self._control.abandon(GONE if status == 410 else REFUSED)
        raise Refused(status, detail)


# --- Events -----------------------------------------------------------------------------------------------


class Outbox:
    """The one ordered queue of events. Bounded: a slow service makes who puts wait, hence the job."""

    def __init__(self, service: Service, order: Order, control: Control) -> None:
        self._service, self._control, self._limits = service, control, order.limits
        self._path = f"/v1/agent/jobs/{order.job}/events"
        self._changed = threading.Condition()
        self._queue: deque[Tuple[dict[str, Any], int]] = deque()
        self._bytes = 0
        self._first = 1  # the number of the oldest event in the queue
        self._flushing = False

    def put(self, stream: str, task: Optional[int], payload: str) -> None:
        """Queue one event, timed now; wait while the queue is full, and drop it when abandoned."""
        event = {"time": utc_now(), "stream": stream, "task": task, "payload": payload}
        size = len(json.dumps(event)) + 2
        with self._changed:
            while self._is_full(4) and not self._control.abandoned:
                self._changed.wait(0.5)
            if not self._is_full(4):
                self._queue.append((event, size))
                self._bytes += size
                self._changed.notify_all()

    def flush(self) -> None:
        """Return when all is delivered, or can't be."""
        with self._changed:
            self._flushing = True
            self._changed.notify_all()
            while self._queue and not self._control.abandoned:
                self._changed.wait(0.5)
            self._flushing = False

    def deliver(self) -> None:
        """Deliver events until abandoned. Runs as a thread; its last act is one try for what is left."""
        while not self._control.abandoned:
            batch = self._next_batch()
            if batch:
                self._deliver(batch)

    def deliver_rest(self) -> None:
        """Try once to deliver what is left, after the lease was lost and the thread has ended."""
        while self._queue:
            self._deliver(self._take())

    def _is_full(self, batches: int) -> bool:
        return (
            len(self._queue) >= batches * self._limits["batch_events"]
            or self._bytes >= batches * self._limits["batch_bytes"]
        )

    def _next_batch(self) -> List[dict[str, Any]]:
        """Wait for events, then a little for more of them: longer when nobody is watching."""
        with self._changed:
            if not self._queue:
                self._changed.wait(0.5)
                return []
            until = now() + (0.2 if self._control.watched else 2.0)
            while not (self._is_full(1) or self._flushing or self._control.abandoned) and now() < until:
                self._changed.wait(min(0.2, max(0.0, until - now())))
            return self._take()

    def _take(self) -> List[dict[str, Any]]:
        """Return the oldest events that fit in one batch, at least one; they stay until delivered."""
        batch: List[dict[str, Any]] = []
        total = 0
        for event, size in self._queue:
            total += size
            if batch and (len(batch) >= self._limits["batch_events"] or total > self._limits["batch_bytes"]):
                break
            batch.append(event)
        return batch

    def _deliver(self, batch: List[dict[str, Any]]) -> None:
        """Post a batch; one refused for what is in it is halved until the culprit is found and replaced."""
        try:
            self._post(batch)
        except Refused as why:
            if why.status not in (400, 413, 422):
                self._control.abandon(REFUSED)
                raise
            if len(batch) > 1:
                middle = len(batch) // 2
                self._deliver(batch[:middle])
                return self._deliver(batch[middle:])
            try:
                self._post([{**batch[0], "payload": f"[the service refused this line: HTTP {why.status}]"}])
            except Refused:
                self._control.abandon(REFUSED)
                raise

    def _post(self, batch: List[dict[str, Any]]) -> None:
        self._service.call(self._path, {"first": self._first, "events": batch}, renews=True)
        with self._changed:
            self._first += len(batch)
            for _ in batch:
                self._bytes -= self._queue.popleft()[1]
            self._changed.notify_all()


def pieces(line: str, limit: int) -> List[str]:
    """Cut a line into pieces of at most `limit` bytes of UTF-8, between characters."""
    raw, found = line.encode("utf-8"), []
    while len(raw) > limit:
        cut = limit
        while raw[cut] & 0xC0 == 0x80:
            cut -= 1
        found.append(raw[:cut].decode("utf-8"))
        raw = raw[cut:]
    return [*found, raw.decode("utf-8")]


class Lines:
    """Makes lines of the bytes of one stream, whatever they are; too long lines become several."""

    def __init__(self, limit: int, emit: Callable[[str], None]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._limit, self._emit, self._rest = limit, emit, ""

    def feed(self, data: bytes, final: bool = False) -> None:
        *lines, rest = (self._rest + self._decoder.decode(data, final)).split("\n")
        for line in lines:
            for piece in pieces(line, self._limit):
                self._emit(piece)
        *whole, self._rest = pieces(rest, self._limit)
        for piece in whole:
            self._emit(piece)
        if final and self._rest:
            self._emit(self._rest)


class Pump:
    """Reads a task's stdout and stderr into the outbox, as they come, until both are closed."""

    def __init__(self, child: subprocess.Popen[bytes], task: int, limit: int, outbox: Outbox) -> None:
        self._selector = selectors.DefaultSelector()
        self._left: Optional[int] = None  # bytes that are still read, once nobody should be writing
        self.cut_off = False  # whether a pipe was still open at the end
        for stream, pipe in (("stdout", child.stdout), ("stderr", child.stderr)):
            lines = Lines(limit, lambda text, stream=stream: outbox.put(stream, task, text))  # type: ignore[misc]
            self._selector.register(pipe, selectors.EVENT_READ, lines)  # type: ignore[arg-type]

    def last_call(self) -> None:
        """Read what is in the pipes now, then end, even if somebody holds them open."""
        self._left = PIPE_BYTES

    def run(self) -> None:
        """Runs as a thread."""
        while self._selector.get_map():
            ready = self._selector.select(0.2)
            if self._left is not None and (not ready or self._left < 0):
                self.cut_off = True
                break
            for key, _ in ready:
                self._read(key)
        for key in list(self._selector.get_map().values()):
            self._close(key)
        self._selector.close()

    def _read(self, key: selectors.SelectorKey) -> None:
        data = os.read(key.fd, 1 << 16)
        if self._left is not None:
            self._left -= len(data)
        if data:
            key.data.feed(data)
        else:
            self._close(key)

    def _close(self, key: selectors.SelectorKey) -> None:
        self._selector.unregister(key.fileobj)
        key.data.feed(b"", final=True)
        key.fileobj.close()  # type: ignore[union-attr]


# --- Processes --------------------------------------------------------------------------------------------


def adopt_orphans() -> None:
    """Have the job's orphans handed to the agent (Linux only), so that nothing it starts can get lost."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def bury_orphans(keep: int) -> None:
    """Collect dead orphans; the dead child `keep` is left to whoever started it."""
    while sys.platform == "linux":
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if dead is None or dead.si_pid == keep:
            return
        os.waitpid(dead.si_pid, 0)


@dataclass(frozen=True)
class Process:
    """A living process, as /proc shows it."""

    parent: int
    group: int


def processes() -> dict[int, Process]:
    """Return all living processes by id; empty where there is no /proc."""
    found = {}
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        if name.isdigit():
            with contextlib.suppress(OSError):
                text = Path("/proc", name, "stat").read_text(errors="replace")
                state, parent, group = text.rpartition(")")[2].split()[:3]
                if state not in "ZX":
                    found[int(name)] = Process(int(parent), int(group))
    return found


def lineage(pid: int, table: dict[int, Process]) -> List[int]:
    """Return a process and its ancestors."""
    line: List[int] = []
    while pid in table and pid not in line:
        line.append(pid)
        pid = table[pid].parent
    return line


class Family:
    """The job's processes. `group` is that of the running task."""

    def __init__(self, worker: str) -> None:
        self._mark = f"PENSTOCK_WORKER_ID={worker}".encode()
        self.group = 0

    def of_task(self) -> List[int]:
        """Return the living members of the task's process group."""
        if sys.platform != "linux":
            return self._probe_group()
        return [pid for pid, process in processes().items() if process.group == self.group]

    def everybody(self) -> List[int]:
        """Return all that the job started: the agent's descendants, and whoever has the worker's id in its
        environment (which finds what an agent that crashed has left)."""
        if sys.platform != "linux":
            return self._probe_group()
        table, me = processes(), os.getpid()
        spared = lineage(me, table)
        ours = (pid for pid in table if pid not in spared)
        return [pid for pid in ours if me in lineage(pid, table) or self._is_marked(pid)]

    def _is_marked(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            return self._mark in Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
        return False

    def _probe_group(self) -> List[int]:
        with contextlib.suppress(OSError):
            if self.group:
                os.kill(-self.group, 0)
                return [-self.group]
        return []


@dataclass(frozen=True)
class Ended:
    """How processes were ended: how many there were, and after how many seconds some had to be killed."""

    count: int
    killed_after: Optional[float]

    def __str__(self) -> str:
        return "SIGTERM" + (f", and SIGKILL after {self.killed_after:g} s" if self.killed_after is not None else "")


def end(find: Callable[[], List[int]], grace: Callable[[], float]) -> Ended:
    """End what `find` finds: TERM, wait at most `grace()` seconds, KILL until nothing is found any more."""
    started, first = now(), find()
    send(first, signal.SIGTERM)
    while find() and now() < started + grace():
        time.sleep(0.05)
    allowed, killed = grace(), False
    for _ in range(100):  # some may fork while they are being killed, and a stuck one can't be
        left = find()
        if not left:
            break
        killed = True
        send(left, signal.SIGKILL)
        time.sleep(0.05)
    return Ended(len(first), allowed if killed else None)


def send(pids: Iterable[int], number: int) -> None:
    """Signal processes, which may have gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


# --- Running the tasks ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """How the job went, as finish reports it."""

    result: str = "succeeded"
    reason: Optional[str] = None
    task: Optional[int] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None


@dataclass(frozen=True)
class Job:
    """All that belongs to the one job of this agent."""

    config: Config
    order: Order
    places: Places
    control: Control
    service: Service
    outbox: Outbox
    family: Family

    def environment(self, task: Task) -> dict[str, str]:
        """Return the whole environment of a task; nothing of the agent's own gets in."""
        base = {} if task.env_clear else {**self._machine(), **self._identity(task)}
        # Whatever a job sets: by this name its processes are found and ended.
        return {**base, **self.order.env, **task.env, "PENSTOCK_WORKER_ID": self.config.worker}

    def _machine(self) -> dict[str, str]:
        user, language, tmp = (
            pwd.getpwuid(os.getuid()).pw_name,
            installed_locale(),
            self.places.on_machine("/tmp"),
        )
        return {
            **{"HOME": self.places.home, "USER": user, "LOGNAME": user, "TZ": "UTC", "TMPDIR": tmp},
            **{"LANG": language, "LC_ALL": language, "CI": "true"},
            "PATH": f"{self.places.bin}:/usr/local/bin:{BASE_PATH}",
        }

    def _identity(self, task: Task) -> dict[str, str]:
        reply = self.order.reply
        return {
            **{"BUILDOMAT_JOB_ID": self.order.job, "BUILDOMAT_TASK_ID": str(task.index)},
            "PENSTOCK_JOB_ID": self.order.job,
            "PENSTOCK_ATTEMPT": str(reply["attempt"]),
            "PENSTOCK_TARGET": reply["target"],
            "PENSTOCK_DEADLINE": reply.get("deadline") or "",
            "PENSTOCK_ROOT": self.places.root,
            "PENSTOCK_WORK": self.places.on_machine("/work"),
            "PENSTOCK_INPUT": self.places.on_machine("/input"),
        }

    def stopped(self, task: Task, how: str) -> Outcome:
        """Return the outcome of a job that was cancelled or ran too long; `how` says what was done to it."""
        limit = duration(self.order.timeout)
        why = {
            CANCELLED: "the job was cancelled",
            TIMED_OUT: f"the job ran longer than its timeout of {limit}",
        }
        stopped = self.control.stopped
        return Outcome(stopped or "failed", f"{why.get(stopped, 'the work was abandoned')}; {how}", task.index)


def installed_locale() -> str:
    """Return en_US.UTF-8 where there is one: bash complains in every job's log about a locale that is not."""
    for name in ("en_US.UTF-8", "C.UTF-8"):
        with contextlib.suppress(locale.Error):
            locale.setlocale(locale.LC_ALL, name)
            locale.setlocale(locale.LC_ALL, "C")
            return name
    return "C"


def run_tasks(job: Job) -> Outcome:
    """Run the tasks in their order, up to the first that fails or the wish to stop."""
    job.control.deadline = now() + job.order.timeout
    outcome = Outcome()
    for task in job.order.tasks:
        if job.control.stopping:
            outcome = job.stopped(task, f"{task} did not start")
        else:
            job.outbox.put("task", task.index, f'starting task {task.index}: "{task.name}"')
            outcome = Run(job, task).run()
        if outcome.result != "succeeded":
            break
    job.control.deadline = None
    strays = end(job.family.everybody, lambda: min(job.control.grace(), 2.0))
    if strays.count:
        job.outbox.put("worker", None, f"ended {strays.count} process(es) that the job left running; they got {strays}")
    return outcome


class Run:
    """One task: started, watched, ended together with its process group."""

    def __init__(self, job: Job, task: Task) -> None:
        self._job, self._task = job, task

    def run(self) -> Outcome:
        started = now()
        try:
            script = self._write_script()
            child = self._start(script)
        except (OSError, ValueError) as why:  # ValueError: a zero byte in the environment
            reason = f"{self._task} could not start: {why}"
            self._say(reason)
            return Outcome("failed", reason, self._task.index)
        outcome = self._watch(child, started)
        with contextlib.suppress(OSError):  # it is the job's to remove, too
            os.unlink(script)
        return outcome

    def _write_script(self) -> str:
        tmp = self._job.places.on_machine("/tmp")
        os.makedirs(tmp, exist_ok=True)  # an earlier task may have removed it
        handle, path = tempfile.mkstemp(prefix=f"task-{self._task.index}-", suffix=".sh", dir=tmp)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(self._task.script)
        return path

    def _start(self, script: str) -> subprocess.Popen[bytes]:
        workdir = self._job.places.on_machine(self._task.workdir)
        os.makedirs(workdir, exist_ok=True)
        child = subprocess.Popen(
            ["/bin/bash", script],
            cwd=workdir,
            env=self._job.environment(self._task),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._job.family.group = child.pid
        return child

    def _watch(self, child: subprocess.Popen[bytes], started: float) -> Outcome:
        control, index = self._job.control, self._task.index
        pump = Pump(child, index, self._job.order.limits["line_bytes"], self._job.outbox)
        reader = control.thread(f"pump of {self._task}", pump.run)
        while child.poll() is None and not control.stopping:
            bury_orphans(keep=child.pid)
            time.sleep(0.02)
        ended = None
        if child.returncode is None:
            ended = end(self._job.family.everybody, control.grace)
        with contextlib.suppress(subprocess.TimeoutExpired):  # the kernel may not let go of it
            child.wait(10)
        seconds = now() - started
        self._let_go(pump, reader)
        self._say_exit(child.returncode, seconds)
        return self._judge(child.returncode, ended)

    def _let_go(self, pump: Pump, reader: threading.Thread) -> None:
        """Wait for the rest of the output, then end the rest of the group."""
        reader.join(PIPE_SECONDS)
        left = end(self._job.family.of_task, lambda: min(self._job.control.grace(), 2.0))
        if left.count:
            self._say(f"ended {left.count} process(es) that the task left running; they got {left}")
        pump.last_call()
        reader.join()
        if pump.cut_off:
            self._say(f"stdout or stderr stayed open for {PIPE_SECONDS:g} s after the exit; not waiting for more")

    def _say(self, text: str) -> None:
        self._job.outbox.put("task", self._task.index, text)

    def _say_exit(self, code: Optional[int], seconds: float) -> None:
        took = f"duration {seconds * 1000:.0f} ms"
        if code is None or code < 0:
            self._say(f"process was killed: {took}, signal {signal_name(-(code or -9))}")
        else:
            self._say(f"process exited: {took}, exit code {code}")

    def _judge(self, code: Optional[int], ended: Optional[Ended]) -> Outcome:
        number = -(code or -9) if code is None or code < 0 else None
        facts = Outcome(task=self._task.index, exit_code=code if number is None else None, signal=number)
        if ended is not None:
            stopped = self._job.stopped(self._task, f"it got {ended}")
            return replace(facts, result=stopped.result, reason=stopped.reason)
        if number is not None:
            return replace(facts, result="failed", reason=f"{self._task} was killed by signal {signal_name(number)}")
        if code:
            return replace(facts, result="failed", reason=f"{self._task} exited with code {code}")
        return Outcome(exit_code=0)


# --- Outputs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """An output rule. `!`: never upload; `=`: something must match; `%`: may change while it is read."""

    text: str
    parts: Tuple[str, ...]
    ignore: bool
    required: bool
    may_change: bool

    @classmethod
    def parse(cls, text: str) -> Rule:
        pattern = text.lstrip("!=%")
        sigils = text[: len(text) - len(pattern)]
        parts = tuple(os.path.normpath(pattern).strip("/").split("/"))
        return cls(text, parts, "!" in sigils, "=" in sigils, "%" in sigils)


def expand(base: str, parts: Tuple[str, ...]) -> Iterator[str]:
    """Yield the paths below `base` that a pattern matches; a last `**` matches all files at any depth."""
    if not parts:
        yield base
    elif parts[0] == "**":
        rest = parts[1:] or ("*",)
        for directory, inner, _ in os.walk(base):  # doesn't follow symlinks, so it ends
            inner.sort()
            yield from expand(directory, rest)
    elif not re.search(r"[*?\[]", parts[0]):
        path = os.path.join(base, parts[0])
        if os.path.lexists(path):
            yield from expand(path, parts[1:])
    else:
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(base)):
                if fnmatch.fnmatchcase(name, parts[0]):
                    yield from expand(os.path.join(base, name), parts[1:])


@dataclass(frozen=True)
class Found:
    """A file that the rules name; `name` is its path as the job knows it."""

    name: str
    path: str
    may_change: bool


@dataclass(frozen=True)
class Measured:
    """A file as it was when it was read: its size in bytes, its SHA-256, when it was last written."""

    file: Found
    size: int
    sha256: str
    written: int


@dataclass(frozen=True)
class Problem:
    """Why a file was not uploaded; `moving`: because it changed or vanished, which `%` allows."""

    text: str
    moving: bool = False


class Changed(Exception):
    """A file is not what it was when it was measured."""


class Prefix:
    """The first `size` bytes of a file, hashed while they are read. Raises Changed when there are fewer."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left, self._hash = file, size, hashlib.sha256()

    def read(self, count: int = 1 << 20) -> bytes:
        data = self._file.read(min(count, self._left))
        if self._left and not data:
            raise Changed("it became shorter")
        self._left -= len(data)
        self._hash.update(data)
        return data

    def sha256(self) -> str:
        """Read what is left and return the hash in hex."""
        while self._left:
            self.read()
        return self._hash.hexdigest()


def open_regular(path: str) -> IO[bytes]:
    """Open a regular file, without ever waiting for somebody at the other end of a FIFO. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileNotFoundError(f"{path} is no longer a regular file")
    return open(handle, "rb")


class Uploads:
    """Uploads what the output rules name, one file at a time, and remembers the first fault."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._path = f"/v1/agent/jobs/{job.order.job}/outputs"
        self._uploaded: set[str] = set()
        self._fault: Optional[str] = None

    def run(self) -> Optional[str]:
        """Upload. Return why the outputs are not what the rules ask for, or None. Raises ServiceError."""
        matches = {rule.text: list(self._match(rule)) for rule in self._job.order.rules if not rule.ignore}
        files = self._select(list(dict.fromkeys(path for paths in matches.values() for path in paths)))
        for start in range(0, len(files), UPLOAD_BATCH):
            self._upload(files[start : start + UPLOAD_BATCH])
        for rule in self._job.order.rules:
            if rule.required and not self._uploaded & {self._name(path) for path in matches[rule.text]}:
                self._fail(f'no file was uploaded for output rule "{rule.text}", which requires one')
        return self._fault

    def _name(self, path: str) -> str:
        return self._job.places.in_job(path)

    def _say(self, text: str) -> None:
        self._job.outbox.put("worker", None, text)

    def _fail(self, text: str) -> None:
        self._say(f"error: {text}")
        self._fault = self._fault or text

    def _match(self, rule: Rule) -> Iterator[str]:
        """Yield the regular files a rule matches; what is anything else is passed over."""
        for path in expand(self._job.places.root, rule.parts):
            with contextlib.suppress(OSError):
                if not stat.S_ISREG(os.stat(path).st_mode):
                    continue
                if self._job.places.holds(path):
                    yield path
                else:
                    self._say(f"warning: {self._name(path)} is a link to outside of the job; not uploaded")

    def _select(self, paths: List[str]) -> List[Found]:
        """Drop what is ignored, and what is over the limits or has no usable name, which are faults."""
        rules, limits = self._job.order.rules, self._job.order.limits
        ignored = {path for rule in rules if rule.ignore for path in expand(self._job.places.root, rule.parts)}
        loose = {p for rule in rules if rule.may_change for p in expand(self._job.places.root, rule.parts)}
        files = [Found(self._name(path), path, path in loose) for path in paths if path not in ignored]
        if len(files) > limits["outputs"]:
            self._fail(f"the output rules match {len(files)} files; a job may have {limits['outputs']} outputs")
        return [file for file in files[: limits["outputs"]] if self._is_nameable(file)]

    def _is_nameable(self, file: Found) -> bool:
        try:
            file.name.encode("utf-8")
        except UnicodeEncodeError:
            self._fail(f"the name of output {os.fsencode(file.name)!r} is not UTF-8")
            return False
        return True

    def _upload(self, files: List[Found]) -> None:
        problems: dict[Found, Problem] = {}
        for _ in range(UPLOAD_ROUNDS):
            measured = [found for found in map(self._measure, files) if found]
            problems = self._send(measured) if measured else {}
            for file in [file for file, problem in problems.items() if problem.moving and not file.may_change]:
                self._blame(file, problems.pop(file))
            files = list(problems)
        for file, problem in problems.items():
            self._blame(file, problem)

    def _blame(self, file: Found, problem: Problem) -> None:
        """Report a file that was not uploaded: a warning, if its rule allows for that."""
        text = f"output {file.name} was not uploaded: {problem.text}"
        if problem.moving and file.may_change:
            self._say(f"warning: {text}")
        else:
            self._fail(text)

    def _measure(self, file: Found) -> Optional[Measured]:
        """Return what a file is now; None, when that was reported as a reason not to upload it."""
        limit = self._job.order.limits["output_bytes"]
        try:
            with open_regular(file.path) as handle:
                before = os.fstat(handle.fileno())
                if before.st_size > limit:
                    self._fail(f"output {file.name} has {size_text(before.st_size)}; the limit is {size_text(limit)}")
                    return None
                digest = Prefix(handle, before.st_size).sha256()
                self._check(file, before.st_size, before.st_mtime_ns, os.fstat(handle.fileno()))
                return Measured(file, before.st_size, digest, before.st_mtime_ns)
        except FileNotFoundError:
            self._blame(file, Problem("it vanished", moving=True))
        except Changed as why:
            self._blame(file, Problem(str(why), moving=True))
        except OSError as why:
            self._blame(file, Problem(str(why)))
        return None

    def _check(self, file: Found, size: int, written: int, after: os.stat_result) -> None:
        if not file.may_change and (after.st_size, after.st_mtime_ns) != (size, written):
            raise Changed('it changed while it was read; a rule with "%" allows that')

    def _send(self, files: List[Measured]) -> dict[Found, Problem]:
        """Upload a batch and commit what was stored. Return what was wrong with the others."""
        body = {"files": [{"path": f.file.name, "size": f.size, "sha256": f.sha256} for f in files]}
        try:
            uploads = {u["path"]: u for u in self._job.service.call(self._path, body)["uploads"]}
        except Refused as why:
            if len(files) == 1:
                return {files[0].file: Problem(f"the service refused it: {why}")}
            return {name: problem for file in files for name, problem in self._send([file]).items()}
        problems, ids = {}, {}
        for file in files:
            upload = uploads[file.file.name]
            problem = self._put(file, upload)
            if problem is None:
                ids[file.file.name] = upload["id"]
            else:
                problems[file.file] = problem
        if ids:
            self._job.service.call(f"{self._path}/commit", {"ids": list(ids.values())})
        for name in ids:
            self._uploaded.add(name)
            self._say(f"uploaded {name}")
        return problems

    def _put(self, file: Measured, upload: dict[str, Any]) -> Optional[Problem]:
        """Send one file's bytes to storage, several times if need be. Return what went wrong, or None."""
        self._say(f"uploading {file.file.name} ({size_text(file.size)})")
        text = ""
        for attempt, delay in enumerate(backoffs(), 1):
            try:
                status, answer = self._put_once(file, upload)
            except Unreachable as why:
                text = f"storage could not be reached: {why}"
            except FileNotFoundError:
                return Problem("it vanished", moving=True)
            except Changed as why:
                return Problem(str(why), moving=True)
            except OSError as why:
                return Problem(str(why))
            else:
                if status < 300:
                    return None
                text = " ".join([f"storage answered HTTP {status}", *re.findall("<Code>(.*?)</Code>", answer)])
                if not transient(status):
                    break
            if attempt == PUT_TRIES or not self._job.control.sleep(delay):
                break
        return Problem(text)

    def _put_once(self, file: Measured, upload: dict[str, Any]) -> Tuple[int, str]:
        if self._job.control.silent:
            raise Abandoned(ABANDONED_BECAUSE[self._job.control.abandoned])
        headers = {**upload.get("headers", {}), "Content-Length": str(file.size)}
        with open_regular(file.file.path) as handle:
            body = Prefix(handle, file.size)
            status, answer = exchange(upload.get("method", "PUT"), upload["url"], body, headers, STORE_SECONDS)
            if status < 300:
                if body.sha256() != file.sha256:
                    raise Changed("it was written to while it was uploaded")
                self._check(file.file, file.size, file.written, os.fstat(handle.fileno()))
        return status, answer.decode("utf-8", "replace")


# --- The agent's life -------------------------------------------------------------------------------------


def run(path: Path) -> int:
    """Live the life of the module's docstring. Return the exit code."""
    config, control = Config.load(path), Control()
    if config.marker.exists():
        return refuse_second_life(config)
    adopt_orphans()
    obey_signals(control)
    service = Service(config.url, config.token(), control)
    log(f"worker {config.worker}: saying hello to {config.url}")
    try:
        order = Order.read(hello(config, service))
    except Refused as why:
        log(f"hello was refused: {why}")
        return 0 if why.status == 410 else 1
    except ServiceError as why:
        log(f"giving up on hello: {why}")
        return 1
    outbox = Outbox(service, order, control)
    job = Job(config, order, Places(config.root), control, service, outbox, Family(config.worker))
    config.marker.write_text(f"started {order.job}\n", encoding="utf-8")
    return attend(job)


def hello(config: Config, service: Service) -> dict[str, Any]:
    """Exchange the bootstrap key for a working token and the job. Raises ServiceError."""
    body = {"worker": config.worker, "key": config.key, "token": config.token()}
    body.update({"host": socket.gethostname(), "version": VERSION})
    return service.call("/v1/agent/hello", {**body, "pid": os.getpid()}, tries=HELLO_TRIES, renews=True)


def refuse_second_life(config: Config) -> int:
    """A job can't be gone on with, nor begun again by a worker that began it once (JOB-2)."""
    if config.marker.read_text(encoding="utf-8").startswith("finished"):
        log("this worker's job is finished already; nothing to do")
        return 0
    log("this agent was restarted in the middle of its job, which it will not run twice; the worker is lost")
    left = end(Family(config.worker).everybody, lambda: 2.0)
    log(f"ended {left.count} process(es) of the job")
    return 1


def obey_signals(control: Control) -> None:
    """Abandon the work on SIGTERM or SIGINT; in a thread, as a handler must not wait for a lock."""

    def terminate(number: int, frame: Any) -> None:
        threading.Thread(target=control.abandon, args=(TERMINATED,), daemon=True).start()

    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGINT, terminate)


def attend(job: Job) -> int:
    """Do the job and report it. Return the exit code."""
    control = job.control
    control.thread("clock", control.watch_clock)
    control.thread("pulse", lambda: keep_lease(job))
    sender = control.thread("outbox", job.outbox.deliver)
    log(f"job {job.order.job}: {len(job.order.tasks)} task(s)")
    try:
        job.places.make()
        with bmat_desk(job):
            outcome = run_tasks(job)
        if not control.silent:
            report(job, outcome, Uploads(job).run(), sender)
    except ServiceError as why:
        log(f"ending early: {why}")
    finally:
        end(job.family.everybody, lambda: 0.0)
    return 0 if control.abandoned in ("", GONE) else 1


def keep_lease(job: Job) -> None:
    """Renew the lease until the work is abandoned. Runs as a thread."""
    while job.control.sleep(job.order.heartbeat):
        job.service.call(f"/v1/agent/jobs/{job.order.job}/heartbeat", {}, renews=True)


def report(job: Job, outcome: Outcome, fault: Optional[str], sender: threading.Thread) -> None:
    """Deliver all events, then say how the job went, unless the lease was lost. Raises ServiceError."""
    if fault and outcome.result == "succeeded":
        outcome = replace(outcome, result="failed", reason=fault)
    job.outbox.flush()
    if job.control.abandoned:
        sender.join(CALL_SECONDS)
        if not sender.is_alive():
            job.outbox.deliver_rest()
        return
    log(f"job {job.order.job}: {outcome.result}: {outcome.reason or 'all tasks exited with code 0'}")
    job.service.call(f"/v1/agent/jobs/{job.order.job}/finish", asdict(outcome))
    job.config.marker.write_text(f"finished {job.order.job}\n", encoding="utf-8")


# --- bmat: the agent's side -------------------------------------------------------------------------------


@contextlib.contextmanager
def bmat_desk(job: Job) -> Iterator[None]:
    """Answer `bmat` while tasks run: every connection gets the facts of the job.

    Credentials of resources are given out here alone, to the job's own user (SEC-1).
    """
    reply = job.order.reply
    facts = {
        "worker": job.config.worker,
        "factory": reply["factory"],
        "resources": reply.get("resources") or {},
    }

    class Answer(socketserver.StreamRequestHandler):
        timeout = 5.0

        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(json.dumps(facts).encode())

    with tempfile.TemporaryDirectory(prefix="bmat-", dir=short_folder(job.places)) as folder:
        path = os.path.join(folder, "socket")
        with socketserver.ThreadingUnixStreamServer(path, Answer) as server:
            os.chmod(path, 0o600)
            install_bmat(job.places, path)
            threading.Thread(target=server.serve_forever, args=(0.1,), name="bmat", daemon=True).start()
            yield
            server.shutdown()


def short_folder(places: Places) -> str:
    """Return a folder for sockets, whose paths may have about 100 bytes. Jobs tidy up their own /tmp."""
    return places.bin if places.private and len(os.fsencode(places.bin)) < 70 else "/tmp"


def install_bmat(places: Places, path: str) -> None:
    """Put `bmat` on the job's PATH. It works whatever the environment it is called with."""
    command = shlex.join([sys.executable, "-I", os.path.realpath(__file__), "bmat"])
    draft = os.path.join(places.bin, ".bmat.new")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nPENSTOCK_SOCKET={shlex.quote(path)} exec {command} "$@"\n')
    os.chmod(draft, 0o755)
    os.replace(draft, os.path.join(places.bin, "bmat"))


# --- bmat: the job's side ---------------------------------------------------------------------------------


class BmatError(Exception):
    """What a script asked for is not there; the message says what is."""


def ask_agent() -> dict[str, Any]:
    """Return the facts of the job. Raises BmatError."""
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(15)
            line.connect(os.environ.get("PENSTOCK_SOCKET", ""))
            line.sendall(b"facts\n")
            with line.makefile("rb") as answer:
                return dict(json.load(answer))
    except (OSError, ValueError) as why:
        raise BmatError(f"no agent answers ({why}); bmat works in the tasks of a running job") from why


def plain(value: Any) -> str:
    """Return text as it is, anything else as JSON."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def pick(what: str, name: str, among: dict[str, Any]) -> Any:
    """Look a name up. Raises BmatError that lists the names there are."""
    if name not in among:
        raise BmatError(f"there is no {what} {name!r}; there is: {', '.join(sorted(among)) or 'none'}")
    return among[name]


def table(rows: List[List[str]], columns: List[str], header: bool) -> Iterator[str]:
    """Yield aligned lines."""
    rows = [[name.upper() for name in columns], *rows] if header else rows
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(len(columns))]
    for row in rows:
        yield "  ".join(row[i].ljust(width) for i, width in enumerate(widths)).rstrip()


def resource_list(args: argparse.Namespace) -> Iterator[str]:
    resources = ask_agent()["resources"]
    rows = [[name, str(resources[name].get("type", ""))] for name in sorted(resources)]
    return table(rows, ["name", "type"], not args.no_header)


def resource_get(args: argparse.Namespace) -> Iterator[str]:
    metadata = pick("resource", args.name, ask_agent()["resources"])["metadata"]
    if args.key is None:
        yield json.dumps(metadata, indent=2, sort_keys=True)
    else:
        yield plain(pick(f"key of resource {args.name!r}:", args.key, metadata))


def resource_env(args: argparse.Namespace) -> Iterator[str]:
    for key, value in sorted(pick("resource", args.name, ask_agent()["resources"])["metadata"].items()):
        variable = re.sub(r"\W", "_", f"{args.name}_{key}", flags=re.ASCII).upper()
        yield f"export {'_' if variable[0].isdigit() else ''}{variable}={shlex.quote(plain(value))}"


def factory_fact(args: argparse.Namespace) -> Iterator[str]:
    yield plain(ask_agent()["worker" if args.fact == "private" else "factory"])


ADDRESS_COLUMNS = ["name", "cidr", "first", "last", "count", "family", "network", "mask", "routed", "gateway"]


def address_list(args: argparse.Namespace) -> Iterator[str]:
    resources = ask_agent()["resources"].values()
    found = [row for resource in resources for row in resource["metadata"].get("addresses") or []]
    columns = [column.strip() for column in args.columns.split(",")]
    for column in columns:
        pick("column", column, dict.fromkeys(ADDRESS_COLUMNS))
    rows = [address_row(row, columns) for row in found if args.name in (None, row.get("name"))]
    return table(rows, columns, not args.no_header)


def address_row(address: dict[str, Any], columns: List[str]) -> List[str]:
    """Return the cells of an address range; what its metadata doesn't say follows from its `cidr`."""
    facts = dict(address)
    with contextlib.suppress(KeyError, ValueError):
        network = ipaddress.ip_network(address["cidr"], strict=False)
        spare = 1 if network.num_addresses > 2 and network.version == 4 else 0  # network and broadcast address
        derived = {"first": str(network[spare]), "last": str(network[-1 - spare])}
        derived.update({"network": str(network.network_address), "mask": str(network.netmask)})
        numbers = {
            "count": network.num_addresses - 2 * spare,
            "family": f"inet{6 if network.version == 6 else ''}",
        }
        facts = {**derived, **numbers, **facts}
    return [plain(facts.get(column)) or "-" for column in columns]


NOT_YET = {
    "store": "the job's values",
    "process": "background processes",
    "cache": "caches",
    "post": "what to run after the job",
}


def not_yet(args: argparse.Namespace) -> Iterator[str]:
    raise NotImplementedError(f"bmat {args.command} is not available yet")


def bmat_parser() -> argparse.ArgumentParser:
    """Describe bmat's command line."""
    parser = argparse.ArgumentParser(prog="bmat", description="Ask about the job that this script belongs to.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    resource = commands.add_parser("resource", help="the resources that this job holds")
    actions = resource.add_subparsers(required=True, metavar="ACTION")
    add_list(actions, resource_list, "names and types of the job's resources")
    get = add(actions, "get", resource_get, "print a resource's metadata as JSON, or one value of it")
    get.add_argument("name", metavar="NAME", help="the resource's name in the job file")
    get.add_argument("key", metavar="KEY", nargs="?", help="print only this value")
    env = add(actions, "env", resource_env, 'print export lines: eval "$(bmat resource env NAME)"')
    env.add_argument("name", metavar="NAME", help="the resource's name in the job file")
    factory = add(commands, "factory", factory_fact, "where this job runs")
    what = "id and name: the factory; private: the worker, as the factory knows it"
    factory.add_argument("fact", choices=["id", "name", "private"], help=what)
    address = commands.add_parser("address", help="address ranges that this job may use")
    listing = add_list(address.add_subparsers(required=True, metavar="ACTION"), address_list, "list them")
    listing.add_argument("-f", dest="name", metavar="NAME", help="only ranges of this name")
    columns = f"columns, with commas between them; there are {', '.join(ADDRESS_COLUMNS)}"
    listing.add_argument("-o", dest="columns", default="name,cidr,first,last,count", metavar="COLUMNS", help=columns)
    for name, text in NOT_YET.items():
        later = add(commands, name, not_yet, f"{text} (not available yet)")
        later.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def add(actions: Any, name: str, action: Callable[..., Iterator[str]], text: str) -> argparse.ArgumentParser:
    """Add a command that calls `action` and prints the lines it yields."""
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text, description=text)
    parser.set_defaults(action=action)
    return parser


def add_list(actions: Any, action: Callable[..., Iterator[str]], text: str) -> argparse.ArgumentParser:
    """Add `list`, also as `ls`, with the option that every list has."""
    parser: argparse.ArgumentParser = actions.add_parser("list", aliases=["ls"], help=text, description=text)
    parser.add_argument("-H", dest="no_header", action="store_true", help="no header line")
    parser.set_defaults(action=action)
    return parser


def bmat(arguments: List[str]) -> int:
    """Be bmat. Return the exit code: 1 for what is not there, 2 for wrong usage or what is not made yet."""
    args = bmat_parser().parse_args(arguments)
    try:
        for line in args.action(args):
            print(line)
    except BmatError as why:
        print(f"bmat: {why}", file=sys.stderr)
        return 1
    except NotImplementedError as why:
        print(why, file=sys.stderr)
        return 2
    return 0


def main(argv: List[str]) -> int:
    """Be the agent or bmat, by the name or the first argument of the call."""
    if os.path.basename(argv[0]) == "bmat":
        return bmat(argv[1:])
    if argv[1:2] == ["bmat"]:
        return bmat(argv[2:])
    parser = argparse.ArgumentParser(prog="agent.py", description="The agent of a Penstock worker.")
    runner = parser.add_subparsers(required=True, metavar="COMMAND").add_parser("run", help="run this worker's job")
    runner.add_argument("--config", type=Path, required=True, help="JSON file: url, worker, key, and perhaps root")
    args = parser.parse_args(argv[1:])
    try:
        return run(args.config)
    except Exception:
        log(f"the agent failed:\n{traceback.format_exc()}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
