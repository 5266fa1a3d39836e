"""The job's tasks: those that prepare the machine, its scripts, and its posts, one after the other."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .caches import JobCaches
from .client import start_thread
from .diagnosis import diagnose, exit_evidence, failure_of_task, not_started, preparation_failed, too_long
from .job import CLONE_FAILED, LOGIN_FAILED, SETUP_FAILED, TOOLCHAIN_FAILED, Job, Order, Outcome, Task
from .joblog import DETAIL, OutputReader, Tail
from .machine import (
    BASE_PATH,
    BUILD_USER,
    Ended,
    Machine,
    count_oom_kills,
    end_processes,
    installed_locale,
    now,
    signal_name,
)
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
    base = {} if task.env_clear else {**_machine_variables(job), **identity}
    chosen = {name: value for name, value in {**job.order.env, **task.env}.items() if name not in identity}
    return {**base, **chosen, "PENSTOCK_WORKER_ID": job.config.worker}


def _machine_variables(job: Job) -> dict[str, str]:
    user, language = job.machine.user, installed_locale()
    return {
        "HOME": job.machine.home,
        "USER": user,
        "LOGNAME": user,
        "TZ": "UTC",
        "LANG": language,
        "LC_ALL": language,
        "CI": "true",
        "TMPDIR": job.machine.real_path("/tmp"),
        "PATH": f"{job.machine.home}/.cargo/bin:{job.machine.bin}:{BASE_PATH}",
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


def write_script(job: Job, task: Task) -> str:
    """Write a task's script to a file of the job's. Return its path. Raises OSError."""
    tmp = job.machine.real_path("/tmp")
    job.machine.make_folder(tmp)  # an earlier task may have removed it
    handle, path = tempfile.mkstemp(prefix=f"task-{task.index}-", suffix=".sh", dir=tmp)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(task.script)
    if not task.as_root:
        job.machine.give_to_user(path)
    return path


def launch_script(job: Job, task: Task, script: str) -> subprocess.Popen[bytes]:
    """Start a script in a process group of its own. Raises OSError; ValueError for a zero byte in the environment."""
    workdir = job.machine.real_path(task.workdir)
    if not task.as_root:
        job.machine.make_folder(workdir)
    child = subprocess.Popen(
        ["/bin/bash", script],
        cwd=workdir,
        env=task_environment(job, task),
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **({} if task.as_root else job.machine.popen_options()),
    )
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
    if machine.alone:
        words = ("setup", BUILD_USER.name, str(BUILD_USER.uid), str(BUILD_USER.gid), BUILD_USER.home)
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
            self._say(f"process was killed: {took}, signal {signal_name(-code)}")
        else:
            self._say(f"process exited: {took}, exit code {code}", "task" if code else DETAIL)

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
    job.control.deadline = None
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
