"""Agents on machines: late, silent, doubled, missing, or acting after their time.

Where its worker is kept an agent goes on after its job: it cleans up, shows the token of that job, and asks until it is
given the next one. What it may show no more is in `simulation/stale_tokens.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from penstock.domain.commands import Hello
from penstock.domain.jobs.jobs import Result
from penstock.domain.logs.logs import Line
from penstock.domain.replies import Idle, Instructions
from penstock.kernel.errors import Refused
from penstock.usecases.workers import agents
from simulation import stale_tokens
from simulation.interfaces import Run
from simulation.tasks import Task

RESULTS = (Result.SUCCEEDED, Result.SUCCEEDED, Result.SUCCEEDED, Result.FAILED)
BROKEN = 12
"""Of so many machines two are broken: one before the script, one after it."""

NEVER = timedelta(days=1000)


class Machine:
    """A machine and its agent. The script runs from hello's answer until it ends, or the lease, or the machine.

    booting ─▶ running ─▶ ended; where it is kept: running ─▶ cleaning ─▶ resting ─▶ running. `past` are the jobs that
    it had, and the tokens with which it acted for them.
    """

    def __init__(self, engine: Run, id: str, key: str) -> None:
        dice, now = engine.dice, engine.world.now()
        self._engine = engine
        self.id, self.key = id, key
        self.state = "booting"
        self.busy = False
        self.past: list[tuple[str, str]] = []
        self.reuse = False
        self.job = ""
        self.attempt = 0
        self.lease = timedelta()
        self.renewed = now
        self.next_at = now + timedelta(seconds=dice.randint(1, 60))
        if engine.chance("mute"):
            self.next_at = now + dice.choice((NEVER, timedelta(seconds=dice.randint(250, 900))))
        self._set_out()

    def _set_out(self) -> None:
        """What the next job will be like."""
        now = self._engine.world.now()
        self.works = timedelta(seconds=self._engine.dice.choice((1, 1, 10, 60, 300, 1500)))
        self.ends_at = now + NEVER
        self.is_cancelled = False
        self.is_over = False
        self.silent_from = now + NEVER
        self.silent_until = now

    @property
    def token(self) -> str:
        """The token that it chose for its present job, or for its next one."""
        return self.token_of(len(self.past))

    def token_of(self, turn: int) -> str:
        """The token of one of its jobs, counted from 0."""
        return f"{self.id.replace('-', '')}{'x' * 43}{turn:02d}"

    def is_running(self) -> bool:
        """Whether the script may be running: it was begun, the machine exists, and its lease has not run out."""
        return (
            self.state == "running"
            and not self.is_over
            and self._is_there()
            and self._engine.world.now() < self.renewed + self.lease
        )

    def _is_there(self) -> bool:
        return self.id in self._engine.outside.things

    def behave(self) -> None:
        """The trouble is over: do what is left to do at once."""
        now = self._engine.world.now()
        self.ends_at, self.silent_until = min(self.ends_at, now + timedelta(seconds=5)), now
        self.next_at = min(self.next_at, now + timedelta(seconds=5)) if self.state != "ended" else now + NEVER

    def act(self) -> None:
        """The agent's next call."""
        now = self._engine.world.now()
        if self.past and self.state != "ended" and self._engine.chance("rogue"):
            stale_tokens.try_old_tokens(self._engine, self)
        if self.state in ("booting", "cleaning", "resting"):
            self._ask()
        elif self.state == "ended":
            self.next_at = now + NEVER
            self._rogue_call()
        elif now >= self.renewed + self.lease:
            self._end("stops by itself: its lease ran out")
        elif self.silent_from <= now < self.silent_until:
            self.next_at = min(self.silent_until, self.renewed + self.lease)
        elif now >= self.ends_at:
            self._call("finish", self._finish, self._finished)
        else:
            self._chatter()

    def _call(self, what: str, call: Callable[[], Any], then: Callable[[Task], None]) -> None:
        self.busy = True

        def answered(task: Task) -> None:
            self.busy = False
            then(task)

        self._engine.begin(f"agent {self.id}: {what}", call, answered, unit=self.id)

    def _ask(self) -> None:
        """Ask for a job: for the first one at boot, for the next when it has cleaned up; now and then twice."""
        self.state = "resting" if self.past else self.state
        ask = self.hello()
        self._call("hello", lambda: agents.hello(self._engine.on, ask), self._welcomed)
        if self._engine.chance("double"):
            again = f"agent {self.id}: hello, once more"
            self._engine.begin(again, lambda: agents.hello(self._engine.on, ask), lambda _: None, unit=self.id)

    def hello(self) -> Hello:
        """What it says first."""
        if not self.past:
            return Hello(self.id, self.key, self.token)
        previous = self.past[-1][1]
        return Hello(self.id, self.key, self.token, previous=previous, cleaned=f"nothing of {self.job} is left")

    def _hello(self) -> Any:
        return agents.hello(self._engine.on, self.hello())

    def _welcomed(self, task: Task) -> None:
        engine, dice, now = self._engine, self._engine.dice, self._engine.world.now()
        if isinstance(task.error, Refused):
            self._end(f"is refused: {task.error.code}")
        elif task.error:
            self.next_at = now + timedelta(seconds=dice.randint(1, 15))
        elif isinstance(task.result, Idle):
            self._wait()
        elif self._is_there():
            told = task.result
            self._set_out()
            self.reuse = told.reuse
            self.job, self.attempt = told.job, told.attempt
            self.lease, self.renewed = timedelta(seconds=told.lease_seconds), task.begun
            self.ends_at = now + min(self.works, timedelta(seconds=told.timeout_seconds))
            if engine.chance("silent"):
                self.silent_from = now + timedelta(seconds=dice.randint(0, 60))
                self.silent_until = self.silent_from + timedelta(seconds=dice.choice((30, 150, 600)))
            self.state = "running"
            engine.promises.begins(self, told)
            engine.tell(f"{self.id} runs the script of {self.job}/{self.attempt}")
            self.next_at = now + timedelta(seconds=dice.randint(0, 15))

    def _wait(self) -> None:
        """There is no job yet. A silent agent does not ask again in time."""
        engine, now = self._engine, self._engine.world.now()
        seconds = engine.dice.choice((60, 130, 400)) if engine.chance("silent") else engine.dice.choice((5, 15, 40))
        self.next_at = now + timedelta(seconds=seconds)

    def _rest(self) -> None:
        """The script is over: clean up, which takes a while. A mute agent dies over it, or takes too long."""
        engine, now = self._engine, self._engine.world.now()
        engine.tell(f"{self.id} has finished, and cleans up")
        self.past.append((self.job, self.token))
        self.state = "cleaning"
        self.next_at = now + timedelta(seconds=engine.dice.randint(0, 30))
        if engine.chance("mute"):
            self.next_at = now + engine.dice.choice((NEVER, timedelta(seconds=engine.dice.randint(60, 400))))

    @property
    def broken(self) -> str:
        """Whether the machine is found to be broken, before or after the script; only while agents have trouble."""
        found = {0: "before", 1: "after"}.get(crc32(self.id.encode()) % BROKEN, "")
        return found if self._engine.weather.mute else ""

    def _finish(self) -> Any:
        engine = self._engine
        self.is_over = True  # who reports has ended the script
        is_timeout = self.works > self.ends_at - self.renewed and self.works.total_seconds() > 900
        result = (
            Result.CANCELLED if self.is_cancelled else Result.TIMED_OUT if is_timeout else engine.dice.choice(RESULTS)
        )
        caller = agents.authenticate(engine.on, self.job, self.token)
        if self.broken == "before":
            return agents.report_broken(engine.on, caller, "it is hot")
        broken = "it is hot" if self.broken else ""
        return agents.report_finished(engine.on, caller, result, f"the script ended: {result}", 0, broken)

    def _finished(self, task: Task) -> None:
        if task.error is None and self.reuse and not self.broken:
            self._rest()
        elif task.error is None or isinstance(task.error, Refused):
            self._end("has finished" if task.error is None else "may not finish")
        else:
            self.next_at = self._engine.world.now() + timedelta(seconds=self._engine.dice.randint(1, 15))

    def _chatter(self) -> None:
        engine, sent = self._engine, self._engine.world.now()
        said = engine.dice.choice(("heartbeat", "heartbeat", "heartbeat", "events", "hello"))
        call = {"heartbeat": self._beat, "events": self._speak, "hello": self._hello}[said]
        self._call(said, call, lambda task: self._heard(task, sent, is_beat=said == "heartbeat"))

    def _beat(self) -> Any:
        return agents.heartbeat(self._engine.on, agents.authenticate(self._engine.on, self.job, self.token))

    def _speak(self) -> Any:
        line = Line(self._engine.world.now(), "stdout", "hello", 0)
        return agents.append_events(
            self._engine.on, agents.authenticate(self._engine.on, self.job, self.token), 1, [line]
        )

    def _heard(self, task: Task, sent: datetime, *, is_beat: bool) -> None:
        now = self._engine.world.now()
        self.next_at = now + timedelta(seconds=self._engine.dice.randint(5, 15))
        if isinstance(task.error, Refused):
            self._end(f"is told to stop: {task.error.code}")
        elif task.error is None and self.state == "running":
            self.renewed = max(self.renewed, sent) if is_beat else self.renewed
            if isinstance(task.result, Instructions) and task.result.cancel and not self.is_cancelled:
                self.is_cancelled, self.ends_at = True, min(self.ends_at, now + timedelta(seconds=5))

    def _end(self, why: str) -> None:
        """The script does not run any more. A rogue speaks again, later."""
        engine = self._engine
        self.state = "ended"
        engine.tell(f"{self.id} {why}")
        is_rogue = bool(self.job) and engine.chance("rogue")
        self.next_at = engine.world.now() + (timedelta(seconds=engine.dice.randint(0, 900)) if is_rogue else NEVER)

    def _rogue_call(self) -> None:
        said = self._engine.dice.choice((self._hello, self._finish, self._beat, self._speak))
        self._call(f"{said.__name__.strip('_')} after its end", said, lambda _: None)
