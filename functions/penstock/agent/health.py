"""Whether the machine is fit for jobs: the site's health scripts, and the cleanup between two jobs."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any

from .client import start_thread
from .job import BROKEN_CHARS, Job
from .joblog import DETAIL, OutputReader
from .leftovers import end_user, remove_possessions
from .machine import (
    BASE_PATH,
    JobProcesses,
    Machine,
    duration_text,
    end_processes,
    installed_locale,
    now,
    raise_oom_score,
    reap_orphans,
    signal_name,
)
from .removal import empty_folder

PIPE_SECONDS = 5.0  # how long after a script's exit the agent waits for its pipes to close
SYSTEM_PREFIXES = ("systemd-private-", "snap-private-")  # folders of running services in SYSTEM_TMP
SYSTEM_TMP, SYSTEM_UID = "/tmp", 0  # where services have them, and who owns them


def check_health(job: Job, when: str) -> str | None:
    """Run the site's script for `before` or `after` the job. Return what is wrong with the machine, if anything.

    An interrupted check proves nothing: its job was cancelled, or the work was abandoned.
    """
    job.outbox.put(DETAIL, None, f"checking the machine {when} the job")
    how = HealthCheck(job, when).run(str(job.order.health[when]))
    return f"its health check {when} the job {how}"[:BROKEN_CHARS] if how else None


class HealthCheck:
    """One run of a health script. The last line that it prints is part of the result."""

    def __init__(self, job: Job, when: str) -> None:
        self._job, self._last = job, ""
        self._seconds = float(job.order.health["timeout_seconds"])
        control = job.control
        self._is_over: Callable[[], bool] = (
            (lambda: control.stopping) if when == "before" else (lambda: control.abandoned is not None)
        )

    def run(self, script: str) -> str | None:
        """Run it. Return how it failed, or None."""
        path = ""
        try:
            handle, path = tempfile.mkstemp(prefix="health-", suffix=".sh", dir=self._job.config.folder)
            with open(handle, "w", encoding="utf-8") as file:
                file.write(script)
            return self._watch(self._launch(path))
        except (OSError, ValueError) as why:
            return f"could not start: {why}"
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _launch(self, path: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            ["/bin/bash", path],
            cwd="/",
            env=self._environment(),
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        raise_oom_score(child.pid)
        self._job.processes.group = child.pid
        return child

    def _environment(self) -> dict[str, str]:
        """Return an environment without the job's variables, but with the worker's id, by which processes are found."""
        job = self._job
        return {
            "PATH": BASE_PATH,
            "HOME": job.machine.home if job.machine.private and not job.machine.account else job.machine.own_home,
            "LANG": installed_locale(),
            "PENSTOCK_WORKER_ID": job.config.worker,
            "PENSTOCK_TARGET": str(job.order.reply["target"]),
            "PENSTOCK_ROOT": job.machine.root,
            "PENSTOCK_WORK": job.machine.real_path("/work"),
        }

    def _watch(self, child: subprocess.Popen[bytes]) -> str | None:
        job, until = self._job, now() + self._seconds
        pump = OutputReader(child, None, job.order.limits["line_bytes"], job.mask, self._say)
        reader = start_thread(job.control, "pump of a health check", pump.run)
        while child.poll() is None and not self._is_over() and now() < until:
            reap_orphans({child.pid})
            time.sleep(0.02)
        is_over = self._is_over()
        is_late = child.returncode is None
        if not is_late:
            reader.join(PIPE_SECONDS)
        end_processes(job.processes.all_of_job, lambda: 0.0)
        pump.last_call()
        reader.join()
        return None if is_over else self._judge(child.returncode, is_late)

    def _say(self, stream: str, task: int | None, payload: str) -> None:
        self._last = payload.strip() or self._last
        self._job.outbox.put("health", None, payload)

    def _judge(self, code: int | None, is_late: bool) -> str | None:
        last = f": {self._last}" if self._last else ""
        if is_late or code is None:
            return f"took longer than {duration_text(self._seconds)}{last}"
        if code < 0:
            return f"was killed by signal {signal_name(-code)}{last}"
        return f"exited with code {code}{last}" if code else None


def clean_machine(job: Job) -> str:
    """End the job's processes and remove its files. Return what was checked. Raises OSError if that fails. [UNIT-2]"""
    return remove_leftovers(job.processes, job.machine, str(job.config.folder), f"job {job.order.job}")


def remove_leftovers(processes: JobProcesses, machine: Machine, agent_folder: str, whose: str) -> str:
    """End these processes and empty the machine's folders, except the agent's own folder. Raises OSError."""
    account = machine.account
    if account:
        end_user(account)
    processes.kill_all()
    folders = list(machine.folders())
    for folder in folders:
        _empty_folder(folder, agent_folder)
    if account:
        remove_possessions(account)
        end_user(account)
    left = processes.kill_all()
    if left:
        raise OSError(f"processes {left} can't be ended")
    clean = f"no process of {whose} is left; nothing is in {', '.join(map(_folder_name(machine), folders))}"
    return f"{clean}; nothing of {account.name} is in shared folders, IPC or spools" if account else clean


def _folder_name(machine: Machine) -> Any:
    return lambda folder: "its root" if machine.private else folder


def _empty_folder(folder: str, agent_folder: str) -> None:
    """Empty a folder, except for the agent's own. Remove a file or link that the job put in the folder's place."""
    if os.path.islink(folder) or os.path.isfile(folder):
        os.unlink(folder)
    if not os.path.isdir(folder):
        return
    empty_folder(folder, lambda name: _is_spared(name, folder, agent_folder))


def _is_spared(name: str, folder: str, agent_folder: str) -> bool:
    """Return whether an entry of a folder is the agent's own, or a running service's."""
    path = os.path.join(folder, name)
    return f"{agent_folder}/".startswith(f"{path}/") or (folder == SYSTEM_TMP and _is_of_service(path))


def _is_of_service(path: str) -> bool:
    """Return whether a service has this folder. A job can take such a name, too, but is not the owner then. [UNIT-2]"""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        is_systems = stat.S_ISDIR(found.st_mode) and found.st_uid == SYSTEM_UID
        return is_systems and os.path.basename(path).startswith(SYSTEM_PREFIXES)
    return False
