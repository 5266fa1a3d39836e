"""The job's tasks: those that prepare the machine, its scripts, and its posts, one after the other.

While they run, the agent answers `bmat`: the socket, the requests, and the commands on the job's PATH.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from .account import Account, task_account
from .caches import CacheRequest, Caches, JobCaches
from .client import Control, ServiceError, start_thread
from .diagnosis import diagnose, exit_evidence, failure_of_task, not_started, preparation_failed, too_long
from .job import CLONE_FAILED, LOGIN_FAILED, SETUP_FAILED, TOOLCHAIN_FAILED, Declined, Job, Order, Outcome, Task
from .joblog import DETAIL, OutputReader, Tail
from .machine import (
    BASE_PATH,
    Ended,
    Machine,
    count_oom_kills,
    end_processes,
    installed_locale,
    log,
    now,
    raise_oom_score,
    signal_name,
)
from .masking import resource_secrets, text_secrets
from .prepare import TOOLCHAIN_FILE

MIRROR_VARIABLES = ("RUSTUP_UPDATE_ROOT", "RUSTUP_DIST_SERVER")
"""Mirrors for Rust. A job sees no other variable of the agent's own environment."""

MINUTE = 60.0
PIPE_SECONDS = 5.0  # how long after a task's exit the agent waits for its pipes to close
STUCK_SECONDS = 10.0  # how long the agent waits for a killed process to end
KILLED = -9
NEED_NO_CACHE = (SETUP_FAILED, LOGIN_FAILED, CLONE_FAILED)
"""The kinds of preparation tasks that run before caches are restored."""


def task_environment(job: Job, task: Task) -> dict[str, str]:
    """Return a task's whole environment. A job cannot override the agent's own variables. [SEC-2]

    The worker's id is always set: by it the agent finds and ends the job's processes. [JOB-2]
    """
    identity = _job_variables(job, task)
    if task.as_root:
        return {"PATH": BASE_PATH, "HOME": job.machine.own_home, "LC_ALL": installed_locale(), **identity}
    base = {} if task.env_clear else {**_machine_variables(job, task), **identity}
    chosen = {name: value for name, value in {**job.order.env, **task.env}.items() if name not in identity}
    return {**base, **chosen, "PENSTOCK_WORKER_ID": job.config.worker}


def _machine_variables(job: Job, task: Task) -> dict[str, str]:
    account, language = _account(job, task), installed_locale()
    is_own = account is None or account == job.machine.account
    user, home = (job.machine.user, job.machine.home) if is_own or not account else (account.name, account.home)
    return {
        "HOME": home,
        "USER": user,
        "LOGNAME": user,
        "TZ": "UTC",
        "LANG": language,
        "LC_ALL": language,
        "CI": "true",
        "TMPDIR": job.machine.real_path("/tmp"),
        "PATH": f"{home}/.cargo/bin:{job.machine.bin}:{BASE_PATH}",
        **{name: os.environ[name] for name in MIRROR_VARIABLES if name in os.environ},
    }


def _job_variables(job: Job, task: Task) -> dict[str, str]:
    reply = job.order.reply
    return {
        "BUILDOMAT_JOB_ID": job.order.job,
        "BUILDOMAT_TASK_ID": str(task.index),
        "PENSTOCK_JOB_ID": job.order.job,
        "PENSTOCK_WORKER_ID": job.config.worker,
        "PENSTOCK_ATTEMPT": str(reply["attempt"]),
        "PENSTOCK_TARGET": reply["target"],
        "PENSTOCK_DEADLINE": reply.get("deadline") or "",
        "PENSTOCK_ROOT": job.machine.root,
        "PENSTOCK_WORK": job.machine.real_path("/work"),
        "PENSTOCK_INPUT": job.machine.real_path("/input"),
    }


def _account(job: Job, task: Task) -> Account | None:
    """Return the account that runs a task; None for the user that runs the agent. Raises PermissionError."""
    if task.uid is None and task.gid is None:
        return job.machine.account
    return task_account(job.machine.account, task.uid, task.gid)


def write_script(job: Job, task: Task) -> str:
    """Write a task's script to a file of the job's. Return its path. Raises OSError."""
    tmp = job.machine.real_path("/tmp")
    with _acting_for(job, task):
        job.machine.make_folder(tmp)  # an earlier task may have removed it
        handle, path = tempfile.mkstemp(prefix=f"task-{task.index}-", suffix=".sh", dir=tmp)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(task.script)
        if not task.as_root:
            job.machine.give_to_user(path, _account(job, task))
    return path


def _acting_for(job: Job, task: Task) -> contextlib.AbstractContextManager[None]:
    """Use files with the rights of a task's user, if the job is confined: its processes may change paths. [SEC-2]"""
    return contextlib.nullcontext() if task.as_root else job.machine.acting()


def launch_script(job: Job, task: Task, script: str) -> subprocess.Popen[bytes]:
    """Start a script in a process group of its own. Raises OSError; ValueError for a zero byte in the environment."""
    workdir, account = job.machine.real_path(task.workdir), _account(job, task)
    with _acting_for(job, task):  # also while it starts: it enters the folder before it is the job's user [SEC-2]
        if not task.as_root:
            job.machine.make_folder(workdir, account)
        child = subprocess.Popen(
            ["/bin/bash", script],
            cwd=workdir,
            env=task_environment(job, task),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **({} if task.as_root or account is None else account.popen_options()),
        )
    raise_oom_score(child.pid)
    job.processes.group = child.pid
    return child


def needs_own_home(reply: dict[str, Any]) -> bool:
    """Return whether a preparation task puts something into the job's home: a token, or a toolchain."""
    return bool(reply.get("repository") or reply.get("toolchain"))


def plan_tasks(order: Order, machine: Machine) -> Order:
    """Return an order with the preparation tasks first, and all tasks numbered in their order."""
    tasks = [
        *_setup_tasks(machine),
        *_repository_tasks(order.reply, machine),
        *_toolchain_tasks(order.reply, machine),
        *order.tasks,
    ]
    return replace(order, tasks=[replace(task, index=at) for at, task in enumerate(tasks)])


def _setup_tasks(machine: Machine) -> Iterator[Task]:
    if machine.account:
        words = ("setup", json.dumps({**asdict(machine.account), "home": machine.home}), machine.root)
        task = _preparation_task(
            machine, "setup", 5 * MINUTE, SETUP_FAILED, "the machine could not be set up", {}, *words
        )
        yield replace(task, as_root=True)


def _repository_tasks(reply: dict[str, Any], machine: Machine) -> Iterator[Task]:
    repository = reply.get("repository")
    if not repository:
        return
    name, about = repository["name"], {"repository": repository["name"]}
    trouble = f"the job could not get its token for {name}"
    words = ("authentication", *repository["machines"])
    yield _preparation_task(machine, "authentication", 10 * MINUTE, LOGIN_FAILED, trouble, about, *words)
    if repository["clone"]:
        folder = machine.real_path(f"/work/{name}")
        about, trouble = {**about, "commit": repository["sha"]}, f"the repository {name} could not be cloned"
        where = (repository["url"], repository["sha"], repository["branch"], folder)
        yield _preparation_task(machine, "clone repository", 60 * MINUTE, CLONE_FAILED, trouble, about, "clone", *where)


def _toolchain_tasks(reply: dict[str, Any], machine: Machine) -> Iterator[Task]:
    channel, repository = reply.get("toolchain"), reply.get("repository")
    if not channel:
        return
    words: tuple[str, ...] = ("toolchain", channel)
    if channel == TOOLCHAIN_FILE and repository and not repository["clone"]:
        words = ("toolchain-of", repository["url"], repository["sha"])
    elif channel == TOOLCHAIN_FILE:
        words = ("toolchain-named", machine.real_path(f"/work/{repository['name']}" if repository else "/work"))
    trouble = f"the Rust toolchain {channel} could not be installed"
    about = {"toolchain": channel}
    yield _preparation_task(machine, "rust-toolchain", 30 * MINUTE, TOOLCHAIN_FAILED, trouble, about, *words)


def _preparation_task(
    machine: Machine, name: str, seconds: float, kind: str, trouble: str, about: dict[str, Any], *words: str
) -> Task:
    """Return a task that runs a preparation program of the agent's own file."""
    program = shlex.join([sys.executable, "-I", "-S", machine.program, "prepare", *words])
    return Task(
        0, name, f"exec {program}\n", {}, env_clear=False, workdir="/tmp", seconds=seconds, kind=kind,
        trouble=trouble, about=about,
    )  # fmt: skip


class TaskRun:
    """One run of a task."""

    def __init__(self, job: Job, task: Task) -> None:
        self._job, self._task = job, task
        self._tail = Tail(job.outbox.put)
        self._memory = count_oom_kills()

    def run(self) -> Outcome:
        """Run the task. Return the job's outcome so far."""
        started = now()
        self._say(f'starting task {self._task.index}: "{self._task.name}"', DETAIL)
        try:
            script = write_script(self._job, self._task)
            child = launch_script(self._job, self._task, script)
        except (OSError, ValueError) as why:
            reason = f"{self._task} could not start: {why}"
            self._say(reason)
            return Outcome("failed", reason, self._task.index, failure=not_started(self._task, why))
        outcome = self._watch(child, started)
        with contextlib.suppress(OSError):  # the job may have removed it
            os.unlink(script)
        return outcome

    def _watch(self, child: subprocess.Popen[bytes], started: float) -> Outcome:
        job = self._job
        job.background.begin(self._task.index)
        pump = OutputReader(child, self._task.index, job.order.limits["line_bytes"], job.mask, self._tail.put)
        reader = start_thread(job.control, f"pump of {self._task}", pump.run)
        until = started + (self._task.seconds or float("inf"))
        while child.poll() is None and not job.control.stopping and now() < until:
            job.background.check(child.pid)
            time.sleep(0.02)
        ended = None
        is_late = child.returncode is None and not job.control.stopping
        if child.returncode is None:
            ended = end_processes(job.processes.all_of_job, job.control.grace)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(STUCK_SECONDS)
        seconds = now() - started
        self._finish_output(pump, reader)
        code = KILLED if child.returncode is None else child.returncode
        self._say_exit(code, seconds)
        return self._judge(code, None if is_late else ended, is_late)

    def _finish_output(self, pump: OutputReader, reader: threading.Thread) -> None:
        """Wait for the rest of the output, then end the rest of the group."""
        self._job.background.end(self._job.control.short_grace)
        reader.join(PIPE_SECONDS)
        left = end_processes(self._job.processes.in_task, self._job.control.short_grace)
        if left.count:
            self._say(f"ended {left.count} process(es) that the task left running; they got {left}")
        pump.last_call()
        reader.join()
        if pump.cut_off:
            self._say(f"stdout or stderr stayed open for {PIPE_SECONDS:g} s after the exit; not waiting for more")

    def _say(self, text: str, stream: str = "task") -> None:
        self._job.outbox.put(stream, self._task.index, text)

    def _say_exit(self, code: int, seconds: float) -> None:
        took = f"duration {seconds * 1000:.0f} ms"
        if code < 0:
            self._say(f"process was killed: {took}, signal {signal_name(-code)}: {self._task}")
        else:
            self._say(f"process exited: {took}, exit code {code}: {self._task}", "task" if code else DETAIL)

    def _judge(self, code: int, ended: Ended | None, is_late: bool) -> Outcome:
        if ended:
            outcome = self._stopped(code, ended)
        elif code or is_late:
            outcome = self._failed(code, is_late)
        else:
            return Outcome(exit_code=0)
        return replace(outcome, signal=-code) if code < 0 else replace(outcome, exit_code=code)

    def _failed(self, code: int, is_late: bool) -> Outcome:
        task, lines = self._task, self._tail.lines
        if is_late and task.seconds:
            how, failure = too_long(task, task.seconds, lines)
        else:
            how, failure = diagnose(self._job, task, code, lines, self._memory)
        if task.kind:
            return preparation_failed(task, how, failure, lines)
        return Outcome("failed", f"{task} {how}", task.index, failure=failure)

    def _stopped(self, code: int, ended: Ended) -> Outcome:
        outcome = self._job.stopped(self._task.index, f"it got {ended}")
        found = outcome.failure and replace(
            outcome.failure, evidence={**outcome.failure.evidence, **exit_evidence(code), "ended": str(ended)}
        )
        return replace(outcome, failure=found and failure_of_task(found, self._task, self._tail.lines))


def run_tasks(job: Job, caches: JobCaches | None) -> Outcome:
    """Run the tasks in order until one fails or the work is stopped, then the posts, then end leftover processes.

    Caches are restored after the preparation tasks that need none: the repository is cloned by then.
    """
    outcome = _run_posts(job, _run_each(job, caches))
    job.control.stop_clock()
    strays = end_processes(job.processes.all_of_job, job.control.short_grace)
    if strays.count:
        job.outbox.put("worker", None, f"ended {strays.count} process(es) that the job left running; they got {strays}")
    return outcome


def _run_each(job: Job, caches: JobCaches | None) -> Outcome:
    outcome, to_restore = Outcome(), caches
    for task in job.order.tasks:
        if to_restore and task.kind not in NEED_NO_CACHE:
            to_restore.restore()
            to_restore = None
        if job.control.stopping:
            return job.stopped(task.index, f"{task} did not start")
        outcome = TaskRun(job, task).run()
        if outcome.result != "succeeded":
            break
    return outcome


def _run_posts(job: Job, outcome: Outcome) -> Outcome:
    """Run the posts, each whatever the result of the one before. If one fails, a job that had succeeded fails."""
    tasks = job.order.tasks
    if outcome.failure and any(task.kind and task.index == outcome.task for task in tasks):
        return outcome  # the job's own script has not begun
    for task in job.posts.due(outcome.result, len(tasks), tasks[-1].workdir if tasks else "/work"):
        if job.control.stopping:
            return outcome if outcome.result == "failed" else job.stopped(task.index, f"{task} did not start")
        done = TaskRun(job, task).run()
        outcome = done if outcome.result == "succeeded" else outcome
    return outcome


FACTS_TRIES = 2
REFRESH_SECONDS = 10.0  # the least time between two requests for fresh metadata
CALL_TRIES = 4  # per call: only some seconds, because a script that waits for a value asks again

PFEXEC = """#!/bin/sh
# pfexec COMMAND...: as root
if [ "$(id -u)" = 0 ]; then exec "$@"; fi
exec sudo -n -- "$@"
"""
NO_PFEXEC = """#!/bin/sh
# pfexec COMMAND...: as root, which jobs cannot become here
if [ "$(id -u)" = 0 ]; then exec "$@"; fi
echo "pfexec: jobs cannot become root on this target (it has no sudo): $*" >&2
exit 1
"""
PTIME = """#!/bin/bash
# ptime [-m] COMMAND...: print how long it took
while [[ "$1" == -[mF] ]]; do shift; done
time "$@"
"""
BANNER = """#!/bin/sh
# banner WORD...: a heading
for word; do
  line=$(printf '%s' "## $word ##" | sed 's/./#/g')
  printf '\\n%s\\n## %s ##\\n%s\\n\\n' "$line" "$word" "$line"
done
"""
SHIMS = {"pfexec": PFEXEC, "ptime": PTIME, "banner": BANNER}
REQUEST_BYTES = 1 << 22
"""The longest line that is read: a command and its environment, escaped as JSON."""


class JobFacts:
    """What a job may know of itself. Stale metadata is fetched again; if that fails, the old metadata remains."""

    def __init__(self, job: Job) -> None:
        reply = job.order.reply
        self._job, self._lock = job, threading.Lock()
        self._facts = {"worker": job.config.worker, "factory": reply["factory"]}
        self._use(reply.get("resources") or {}, job.order.received, 0.0)

    def read(self) -> bytes:
        """Return the facts as JSON."""
        with self._lock:
            if now() >= self._fresh_until:
                self._refresh()
            return json.dumps({**self._facts, "resources": self._resources}).encode()

    def _refresh(self) -> None:
        requested = now()
        try:
            resources = self._job.service.call(self._job.order.job, "resources", {}, FACTS_TRIES)["resources"]
        except (ServiceError, KeyError) as why:
            log(f"the metadata of the job's resources cannot be refreshed: {why}")
            resources = self._resources
        self._use(resources, requested, REFRESH_SECONDS)

    def _use(self, resources: dict[str, Any], requested: float, least: float) -> None:
        self._job.mask.learn(resource_secrets(resources))  # before the job can print them [SEC-1]
        self._resources = resources
        fresh = [float(each["fresh_seconds"]) for each in resources.values() if "fresh_seconds" in each]
        self._fresh_until = requested + max(least, min(fresh)) if fresh else float("inf")


class BmatRequests:
    """Answers requests, each a line of JSON. A secret is masked in the log before a script gets it. [SEC-1]"""

    def __init__(self, job: Job) -> None:
        self._job, self._facts = job, JobFacts(job)

    def answer(self, line: bytes) -> bytes:
        """Return the answer to a request, or {"error": why}."""
        try:
            ask = json.loads(line)
            do = {
                "facts": self._read_facts,
                "get": self._get,
                "put": self._put,
                "identity": self._identity,
                "process": self._process,
                "post": self._post,
                "cache": self._cache,
            }[ask["do"]]
            return do(ask)
        except (ServiceError, Declined) as why:
            return json.dumps({"error": str(why)}).encode()
        except (ValueError, LookupError, TypeError, RecursionError):
            return json.dumps({"error": "the agent does not understand this request of bmat"}).encode()

    def _read_facts(self, _: dict[str, Any]) -> bytes:
        return self._facts.read()

    def _get(self, ask: dict[str, Any]) -> bytes:
        found = self._call("store/get", {"name": ask["name"]})
        if found.get("secret"):
            self._job.mask.learn(text_secrets(str(found["value"])))
        return json.dumps(found).encode()

    def _put(self, ask: dict[str, Any]) -> bytes:
        """Put a value. One that contains a secret of the job, such as a resource's password, is secret too. [SEC-1]"""
        value = ask["value"]
        if not isinstance(value, str):
            raise TypeError("a value is text")
        is_secret = bool(ask["secret"]) or (bool(value) and self._job.mask.text(value) != value)
        if is_secret:
            self._job.mask.learn(text_secrets(value))
        body = {"name": ask["name"], "value": value, "secret": is_secret}
        return json.dumps(self._call("store/put", body)).encode()

    def _identity(self, ask: dict[str, Any]) -> bytes:
        """Get a token, and mask its signature: without it the token proves nothing. [SEC-1]"""
        found = self._call("identity", {"audience": ask["audience"]})
        self._job.mask.learn(text_secrets(str(found["token"]).rpartition(".")[2]))
        return json.dumps(found).encode()

    def _process(self, ask: dict[str, Any]) -> bytes:
        self._job.background.start(ask)
        return b"{}"

    def _post(self, ask: dict[str, Any]) -> bytes:
        self._job.posts.add(ask)
        return b"{}"

    def _cache(self, ask: dict[str, Any]) -> bytes:
        keys = [str(each) for each in ask["restore_keys"]]
        paths = [str(each) for each in ask["paths"]]
        wanted = CacheRequest(str(ask["name"]), paths, str(ask["key"]), keys, str(ask["cwd"]))
        caches = Caches(self._job)
        found = caches.save(wanted) if ask["what"] == "save" else caches.restore(wanted)
        return json.dumps({"word": found.word, "text": found.text}).encode()

    def _call(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._job.service.call(self._job.order.job, what, body, CALL_TRIES)


def install_shims(folder: str, with_root: bool = True) -> None:
    """Put the commands of illumos that scripts expect into a folder, unless the machine has them. Raises OSError."""
    elsewhere = os.pathsep.join(each for each in BASE_PATH.split(os.pathsep) if each != folder)
    shims = SHIMS if with_root else {**SHIMS, "pfexec": NO_PFEXEC}
    for name, text in shims.items():
        if not shutil.which(name, path=elsewhere):
            write_command(os.path.join(folder, name), text)


def write_command(path: str, text: str) -> None:
    """Write a command, whole or not at all. Raises OSError."""
    draft = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.new")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(draft, 0o755)
    os.replace(draft, path)


@contextlib.contextmanager
def serve_bmat(job: Job) -> Iterator[None]:
    """Answer connections on a socket until the work is abandoned.

    This is the only way to credentials of resources and secrets of the store. Only the job's user can connect. [SEC-1]
    """
    answer = type("Answer", (BmatHandler,), {"requests": BmatRequests(job), "control": job.control})
    with tempfile.TemporaryDirectory(prefix="bmat-", dir=_socket_folder(job.machine)) as folder:
        path = os.path.join(folder, "socket")
        with socketserver.ThreadingUnixStreamServer(path, answer) as server:
            os.chmod(path, 0o600)
            for each in (folder, path):
                job.machine.give_to_user(each)
            _install_commands(job.machine, path)
            threading.Thread(target=server.serve_forever, args=(0.1,), name="bmat", daemon=True).start()
            yield
            server.shutdown()


class BmatHandler(socketserver.StreamRequestHandler):
    """One connection."""

    requests: BmatRequests
    control: Control
    timeout = 5.0

    def handle(self) -> None:
        line = self.rfile.readline(REQUEST_BYTES)
        if not self.control.abandoned:
            self.wfile.write(self.requests.answer(line))


def _socket_folder(machine: Machine) -> str:
    """Return a folder for the socket, whose path may have about 100 bytes. A job may empty its own /tmp."""
    return machine.bin if machine.private and len(os.fsencode(machine.bin)) < 70 else "/tmp"


def _install_commands(machine: Machine, path: str) -> None:
    """Put `bmat` on the job's PATH. It runs the agent's own file, and works in any environment.

    Beside it are commands that scripts expect and this machine lacks.
    """
    command = shlex.join([sys.executable, "-I", "-S", machine.program, "bmat"])
    text = f'#!/bin/sh\nPENSTOCK_SOCKET={shlex.quote(path)} exec {command} "$@"\n'
    write_command(os.path.join(machine.bin, "bmat"), text)
    install_shims(machine.bin, with_root=not machine.is_confined)
