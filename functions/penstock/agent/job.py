"""The job: what the service says of it, its posts and background processes, what all parts share, and its outcome."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .client import Client, Control, Stop
from .downloads import DOWNLOAD_TRIES, Copies, download
from .joblog import Outbox, OutputReader, Put
from .machine import (
    Config,
    JobProcesses,
    Machine,
    duration_text,
    end_processes,
    now,
    raise_oom_score,
    reap_orphans,
    signal_name,
)
from .masking import Mask

BROKEN_CHARS = 500  # the service refuses longer texts
REASON_CHARS = 2000  # the service refuses longer texts
EVIDENCE_CHARS = 1000  # the service cuts longer texts of the evidence
WHEN = {"success": ("succeeded",), "failure": ("failed",), "always": ("succeeded", "failed")}
"""The results of the tasks after which a post runs."""

SETUP_FAILED, LOGIN_FAILED, CLONE_FAILED, TOOLCHAIN_FAILED = (
    "machine_broken",
    "authentication_failed",
    "clone_failed",
    "toolchain_failed",
)

NAME_PATTERN = re.compile(r"[A-Za-z0-9._-]{1,48}")
MOST_NAMES = 100
PIPE_SECONDS = 5.0  # how long the agent reads the rest of background processes' output after their end


class Declined(Exception):
    """The agent refuses a request of a task. The message says why."""


def text_environment(env: Any) -> dict[str, str]:
    """Return an environment with texts only: a script may write anything to the socket."""
    return {str(name): str(value) for name, value in dict(env).items()}


def check_name(name: str, known: Collection[str], what: str) -> None:
    """Make sure that a name is valid and new, and that there is room for it. Raises Declined."""
    if not NAME_PATTERN.fullmatch(name):
        raise Declined(f"{name!r} is no name: 1 to 48 of A-Z a-z 0-9 . _ -")
    if name in known:
        raise Declined(f"there is a {what} {name} already")
    if len(known) >= MOST_NAMES:
        raise Declined(f"there are {MOST_NAMES} of a {what} already, which is the limit")


@dataclass(frozen=True)
class BackgroundProcess:
    """A background process, with the reader of its output."""

    name: str
    child: subprocess.Popen[bytes]
    pump: OutputReader
    reader: threading.Thread


class Background:
    """The running task's background processes. The agent starts them, so that it can log their output and end them.

    The lock keeps `check` from reaping a process that has just been started.
    """

    def __init__(self, put: Put, mask: Mask, processes: JobProcesses, line_bytes: int, machine: Machine) -> None:
        self._put, self._mask, self._processes, self._line_bytes = put, mask, processes, line_bytes
        self._machine = machine
        self._lock = threading.Lock()
        self._all: dict[str, BackgroundProcess] = {}
        self._task: int | None = None  # none are started while no task runs

    def begin(self, task: int) -> None:
        """Accept processes of this task from now on."""
        with self._lock:
            self._task = task

    def start(self, ask: dict[str, Any]) -> None:
        """Start a process with the command, environment and folder of the request. Raises Declined."""
        name, command = str(ask["name"]), [str(each) for each in ask["command"]]
        with self._lock:
            if self._task is None:
                raise Declined("the task is over")
            check_name(name, self._all, "process")
            try:
                child = self._launch(command, ask["cwd"], text_environment(ask["env"]))
            except (OSError, ValueError) as why:
                raise Declined(f"{command[0]} cannot be started: {why}") from None
            raise_oom_score(child.pid)
            self._all[name] = self._attended(name, child, self._task)
        self._say(self._task, f'started background process "{name}" (pid {child.pid})')

    def _launch(self, command: list[str], folder: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start a command. Its process enters the folder before it is the job's user, so it acts as that. [SEC-2]"""
        with self._machine.acting():
            return subprocess.Popen(
                command,
                cwd=folder,
                env=env,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                **self._machine.popen_options(),
            )

    def _attended(self, name: str, child: subprocess.Popen[bytes], task: int) -> BackgroundProcess:
        def put(stream: str, index: int | None, text: str) -> None:
            self._put(f"bg.{name}.{stream}", index, text)

        pump = OutputReader(child, task, self._line_bytes, self._mask, put)
        reader = threading.Thread(target=pump.run, name=f"pump of {name}", daemon=True)
        reader.start()
        return BackgroundProcess(name, child, pump, reader)

    def check(self, keep: int) -> None:
        """Report processes that have ended, then reap dead orphans, except the task's process `keep`."""
        with self._lock:
            for each in [each for each in self._all.values() if each.child.poll() is not None]:
                self._report_exit(each, self._all.pop(each.name).child.returncode)
            reap_orphans({keep, *(each.child.pid for each in self._all.values())})

    def end(self, grace: Callable[[], float]) -> None:
        """End all of them and their descendants: the task is over."""
        with self._lock:
            left, task = list(self._all.values()), self._task
            self._all, self._task = {}, None
        if not left:
            return
        roots = {each.child.pid for each in left if each.child.poll() is None}
        ended = end_processes(lambda: self._processes.in_sessions(roots), grace)
        for each in left:
            each.child.wait()
            each.reader.join(PIPE_SECONDS)
            each.pump.last_call()
            each.reader.join()
        if ended.count:
            names = ", ".join(each.name for each in left)
            self._say(task, f"ended the background processes of the task ({names}); they got {ended}")

    def _report_exit(self, each: BackgroundProcess, code: int) -> None:
        how = f"was killed by signal {signal_name(-code)}" if code < 0 else f"exited with code {code}"
        self._say(self._task, f'background process "{each.name}" {how}')

    def _say(self, task: int | None, text: str) -> None:
        self._put("task", task, text)


@dataclass(frozen=True)
class Rule:
    """An output rule. `!`: never upload; `=`: something must match; `%`: may change while it is read."""

    text: str
    parts: tuple[str, ...]
    ignore: bool
    required: bool
    may_change: bool

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a rule. No `..` is left in its parts, so it can't lead out of the root."""
        pattern = text.lstrip("!=%")
        sigils = text[: len(text) - len(pattern)]
        parts = tuple(os.path.normpath(f"/{pattern}").strip("/").split("/"))
        return cls(text, parts, "!" in sigils, "=" in sigils, "%" in sigils)


@dataclass(frozen=True)
class Task:
    """One script of the job. It runs as the job's user, unless it has a `uid` or a `gid`.

    A preparation task may take `seconds`, and runs `as_root` if it makes the job's user. If it fails, the job's failure
    has its `kind`, its `trouble` as text, and its `about` as evidence.
    """

    index: int
    name: str
    script: str
    env: dict[str, str]
    env_clear: bool
    workdir: str
    seconds: float | None = None
    kind: str = ""
    trouble: str = ""
    about: dict[str, Any] = field(default_factory=dict)
    as_root: bool = False
    uid: int | None = None
    gid: int | None = None

    @classmethod
    def read(cls, index: int, task: dict[str, Any]) -> Task:
        """Read a task of the answer to hello."""
        env, clear, workdir = task.get("env") or {}, bool(task.get("env_clear")), task.get("workdir") or "/work"
        user, group = task.get("uid"), task.get("gid")
        return cls(index, task["name"], task["script"], env, clear, workdir, uid=user, gid=group)

    def __str__(self) -> str:
        return f'task {self.index} "{self.name}"'


@dataclass(frozen=True)
class Order:
    """The job as the answer to hello describes it: `reply`, which arrived at `received`. Durations are in seconds."""

    reply: dict[str, Any] = field(repr=False)
    job: str
    tasks: list[Task]
    rules: list[Rule]
    env: dict[str, str] = field(repr=False)
    timeout: float
    heartbeat: float
    limits: dict[str, int]
    posts: list[dict[str, str]] = field(default_factory=list)
    reuse: bool = False
    health: dict[str, Any] = field(default_factory=dict, repr=False)
    sudo: bool = True
    received: float = field(default_factory=now)

    @classmethod
    def read(cls, reply: dict[str, Any]) -> Order:
        """Read the answer to hello."""
        return cls(
            reply=reply,
            job=reply["job"],
            tasks=[Task.read(index, task) for index, task in enumerate(reply["tasks"])],
            rules=[Rule.parse(text) for text in reply["output_rules"]],
            env=reply.get("env") or {},
            timeout=float(reply["timeout_seconds"]),
            heartbeat=float(reply["heartbeat_seconds"]),
            limits=reply["limits"],
            posts=[dict(post) for post in reply.get("posts") or []],
            reuse=bool(reply.get("reuse")),
            health=reply.get("health") or {},
            sudo=reply.get("sudo", True) is not False,
        )


@dataclass(frozen=True)
class Failure:
    """Why a job did not succeed: a kind, the evidence for it, and the last lines of its task."""

    kind: str
    evidence: dict[str, Any] = field(default_factory=dict)
    task: int | None = None
    task_name: str = ""
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """The body of finish. `task`, `exit_code` and `signal` are those of the task that ended the job.

    `broken` is what is wrong with the machine. The result `broken` means that this kept the script from starting.
    `outputs` are the ids of uploads that the service records with the outcome.
    """

    result: str = "succeeded"
    reason: str | None = None
    task: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    broken: str | None = None
    failure: Failure | None = None
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Post:
    """A script that runs after the tasks. If a task added it with `bmat post`, it has the environment of that task."""

    when: str
    name: str
    script: str
    env: dict[str, str] = field(default_factory=dict)


class Posts:
    """The posts: those of the job file, then those that tasks add with `bmat post`, in order."""

    def __init__(self, posts: Iterable[dict[str, str]] = ()) -> None:
        self._lock = threading.Lock()
        self._all = {each["name"]: Post(each["on"], each["name"], each["script"]) for each in posts}
        self._is_over = False

    def add(self, ask: dict[str, Any]) -> None:
        """Add a command, which will run in the folder of its caller. Raises Declined."""
        name, when = str(ask["name"]), str(ask["when"])
        if when not in WHEN:
            raise Declined(f"{when!r} is none of {', '.join(WHEN)}")
        with self._lock:
            if self._is_over:
                raise Declined("the tasks are over")
            check_name(name, self._all, "post")
            command = shlex.join(str(each) for each in ask["command"])
            script = f"cd {shlex.quote(str(ask['cwd']))} || exit\nexec {command}\n"
            self._all[name] = Post(when, name, script, text_environment(ask["env"]))

    def due(self, result: str, first: int, workdir: str = "/work") -> Iterator[Task]:
        """Yield the posts for a result of the tasks, numbered from `first`. No post can be added any more."""
        with self._lock:
            self._is_over = True
            wanted = [each for each in self._all.values() if result in WHEN[each.when]]
        for index, each in enumerate(wanted, first):
            yield Task(index, each.name, each.script, each.env, env_clear=False, workdir=workdir)


@dataclass(frozen=True)
class Job:
    """What all parts of the agent share about the one job. `copies` is None if no job follows on this machine."""

    config: Config
    order: Order
    machine: Machine
    control: Control
    service: Client
    outbox: Outbox
    processes: JobProcesses
    mask: Mask
    background: Background
    posts: Posts
    copies: Copies | None

    def call(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        """Call the service about this job. Raises ServiceError."""
        return self.service.call(self.order.job, what, body)

    def fetch(self, source: dict[str, Any], path: str, tries: int = DOWNLOAD_TRIES) -> bool:
        """Download a file, or use this machine's copy. Return whether there was one. Raises what `download` raises."""
        if self.copies:
            return self.copies.fetch(self.control, source, path, tries)
        download(self.control, source, path, tries)
        return False

    def stopped(self, task: int, how: str) -> Outcome:
        """Return the outcome when the work is stopped in or before a task; `how` says what happened to the task."""
        if self.control.stopped is Stop.CANCELLED:
            return Outcome("cancelled", f"the job was cancelled; {how}", task, failure=Failure("cancelled", task=task))
        if self.control.stopped is Stop.TIMED_OUT:
            limit = duration_text(self.control.timeout)
            bound = {"bound": "timeout", "bound_seconds": int(self.control.timeout)}
            reason = f"the job ran longer than its timeout of {limit}; {how}"
            return Outcome("timed_out", reason, task, failure=Failure("timed_out", bound, task))
        return Outcome("failed", f"the work was abandoned; {how}", task)
