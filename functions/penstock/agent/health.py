"""Runs the site's own scripts, which tell whether the machine is fit. The job takes no part in them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable

from . import orphans
from .control import start_thread
from .ending import end
from .environment import installed_locale
from .job import Job
from .log import duration_text, now, signal_name
from .shims import BASE_PATH
from .streams import OutputReader

PIPE_SECONDS = 5.0  # how long after its exit a script's pipes may stay open
BROKEN_CHARS = 500  # more is refused by the service


def check(job: Job, when: str) -> str | None:
    """Run the script for `before` or `after` the job's, if there is one. Return what is wrong with the machine.

    One that is interrupted, for its job is cancelled before it began or nobody wants the work any more, tells nothing.
    """
    script = job.order.health.get(when)
    if not script:
        return None
    job.outbox.put("health", None, f"checking the machine {when} the job")
    how = Check(job, when).run(str(script))
    return f"its health check {when} the job {how}"[:BROKEN_CHARS] if how else None


class Check:
    """One run of a health script."""

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
        self._job.family.group = child.pid
        return child

    def _environment(self) -> dict[str, str]:
        """Nothing of the job's own; but by the worker's id its processes are found and ended."""
        job = self._job
        return {
            "PATH": BASE_PATH,
            "HOME": job.places.home if job.places.private else job.places.own_home,
            "LANG": installed_locale(),
            "PENSTOCK_WORKER_ID": job.config.worker,
            "PENSTOCK_TARGET": str(job.order.reply["target"]),
            "PENSTOCK_ROOT": job.places.root,
            "PENSTOCK_WORK": job.places.on_machine("/work"),
        }

    def _watch(self, child: subprocess.Popen[bytes]) -> str | None:
        job, until = self._job, now() + self._seconds
        pump = OutputReader(child, None, job.order.limits["line_bytes"], job.mask, self._say)
        reader = start_thread(job.control, "pump of a health check", pump.run)
        while child.poll() is None and not self._is_over() and now() < until:
            orphans.bury({child.pid})
            time.sleep(0.02)
        is_over = self._is_over()
        is_late = child.returncode is None
        if not is_late:
            reader.join(PIPE_SECONDS)
        end(job.family.everybody, lambda: 0.0)
        pump.last_call()
        reader.join()
        return None if is_over else self._judge(child.returncode, is_late)

    def _say(self, stream: str, task: int | None, payload: str) -> None:
        self._last = payload.strip() or self._last
        self._job.outbox.put("health", None, payload)

    def _judge(self, code: int | None, is_late: bool) -> str | None:
        said = f": {self._last}" if self._last else ""
        if is_late or code is None:
            return f"took longer than {duration_text(self._seconds)}{said}"
        if code < 0:
            return f"was killed by signal {signal_name(-code)}{said}"
        return f"exited with code {code}{said}" if code else None
