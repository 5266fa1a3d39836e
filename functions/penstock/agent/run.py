"""One task: started, watched, ended together with its process group."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from dataclasses import replace

from . import diagnosis, failing, memory
from .control import start_thread
from .ending import Ended, end
from .job import Job
from .launch import launch, write_script
from .log import now, signal_name
from .order import Task
from .outcome import Outcome
from .streams import OutputReader, Tail

PIPE_SECONDS = 5.0  # how long after its exit a task's pipes may stay open
STUCK_SECONDS = 10.0  # how long the kernel may take to let go of a killed process
KILLED = -9


class Run:
    """One run of a task."""

    def __init__(self, job: Job, task: Task) -> None:
        self._job, self._task = job, task
        self._tail = Tail(job.outbox.put)
        self._memory = memory.counts()

    def run(self) -> Outcome:
        """Run the task. Return how the job stands after it."""
        started = now()
        self._say(f'starting task {self._task.index}: "{self._task.name}"')
        try:
            script = write_script(self._job, self._task)
            child = launch(self._job, self._task, script)
        except (OSError, ValueError) as why:
            reason = f"{self._task} could not start: {why}"
            self._say(reason)
            return Outcome("failed", reason, self._task.index, failure=diagnosis.not_started(self._task, why))
        outcome = self._watch(child, started)
        with contextlib.suppress(OSError):  # it is the job's to remove, too
            os.unlink(script)
        return outcome

    def _watch(self, child: subprocess.Popen[bytes], started: float) -> Outcome:
        job = self._job
        job.background.begin(self._task.index)
        pump = OutputReader(child, self._task.index, job.order.limits["line_bytes"], job.mask, self._tail.put)
        reader = start_thread(job.control, f"pump of {self._task}", pump.run)
        until = started + (self._task.seconds or float("inf"))
        while child.poll() is None and not job.control.stopping and now() < until:
            job.background.look(child.pid)
            time.sleep(0.02)
        ended = None
        is_late = child.returncode is None and not job.control.stopping
        if child.returncode is None:
            ended = end(job.family.everybody, job.control.grace)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(STUCK_SECONDS)
        seconds = now() - started
        self._let_go(pump, reader)
        code = KILLED if child.returncode is None else child.returncode
        self._say_exit(code, seconds)
        return self._judge(code, None if is_late else ended, is_late)

    def _let_go(self, pump: OutputReader, reader: threading.Thread) -> None:
        """Wait for the rest of the output, then end the rest of the group."""
        self._job.background.end(self._job.control.short_grace)
        reader.join(PIPE_SECONDS)
        left = end(self._job.family.of_task, self._job.control.short_grace)
        if left.count:
            self._say(f"ended {left.count} process(es) that the task left running; they got {left}")
        pump.last_call()
        reader.join()
        if pump.cut_off:
            self._say(f"stdout or stderr stayed open for {PIPE_SECONDS:g} s after the exit; not waiting for more")

    def _say(self, text: str) -> None:
        self._job.outbox.put("task", self._task.index, text)

    def _say_exit(self, code: int, seconds: float) -> None:
        took = f"duration {seconds * 1000:.0f} ms"
        if code < 0:
            self._say(f"process was killed: {took}, signal {signal_name(-code)}")
        else:
            self._say(f"process exited: {took}, exit code {code}")

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
            how, failure = diagnosis.too_long(task, task.seconds, lines)
        else:
            how, failure = diagnosis.diagnose(self._job, task, code, lines, self._memory)
        if task.kind:
            return failing.failed(task, how, failure, lines)
        return Outcome("failed", f"{task} {how}", task.index, failure=failure)

    def _stopped(self, code: int, ended: Ended) -> Outcome:
        outcome = self._job.stopped(self._task.index, f"it got {ended}")
        found = outcome.failure and replace(
            outcome.failure, evidence={**outcome.failure.evidence, **diagnosis.ending(code), "ended": str(ended)}
        )
        return replace(outcome, failure=found and diagnosis.about(found, self._task, self._tail.lines))
