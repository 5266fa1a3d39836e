"""Jobs from submit until nothing is left, with users and agents that do their part, on a clock moved by hand."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Generator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from penstock.domain.jobs.jobs import Job, State, job_key
from penstock.domain.pools.pools import Claim
from penstock.domain.units.units import Unit, UnitState
from penstock.kernel.rows import Row
from tests import raw
from tests.crash.agent import Agent
from tests.crash.faults import Plan, calm
from tests.crash.promises import Watch
from tests.crash.runtime import Reply, Runtime
from tests.crash.site import Site
from tests.crash.users import Users

MINUTE = 61
SWEEPS = 40
"""How many minutes may pass before whatever went wrong must be made good."""

LATE = 900
"""Seconds after which whatever is still under way has come again."""

STEPS = 3000
LINES = ("one", "two", "three")
BYTES = b"result"
DIGEST = hashlib.sha256(BYTES).hexdigest()
CHECKSUM = base64.b64encode(bytes.fromhex(DIGEST)).decode()  # a signed URL demands it

Script = Callable[["Life"], Generator[Callable[[], bool], None, None]]
"""What users do: asks, and yields what must be so before it asks for more."""

Rests = Callable[["Life"], None]
"""What is called whenever no function runs."""


def ignored(_: Life) -> None:
    """Nobody looks."""


class Life(Users):
    """One run of a scenario."""

    def __init__(self, site: Site, script: Script, token: str, plan: Plan = calm, rests: Rests = ignored) -> None:
        self.site = site
        self.runtime = Runtime(site, plan)
        self.runtime.seam.others = self._meanwhile
        self.watch = Watch()
        self.token = token
        self.agents: dict[str, Agent] = {}
        self.held: set[str] = set()  # jobs whose scripts run until they are let go
        self.held_names: set[str] = set()  # and names of such jobs, for those whose ids are not known beforehand
        self.mute: set[int] = set()  # numbers of workers that never say hello
        self.silent: set[int] = set()  # numbers of workers that are never heard of after hello
        self.failing: set[int] = set()  # numbers of workers whose scripts fail
        self.broken: set[int] = set()  # numbers of workers whose agents find them broken before the script
        self.writes_outputs = False
        self.exchanges = False  # jobs put a secret into their stores, and read it
        self.asks = False  # jobs ask for their tokens of GitHub
        self.told: set[str] = set()  # those that they were told
        self.rows: Mapping[str, list[Row]] = {}
        self.script_over = False
        self.minutes = 0
        self.is_late = False  # all is over, and what was late comes
        self.asked = 0
        self.script = script(self)
        self._rests = rests
        self._until: Callable[[], bool] = lambda: True
        self._look()

    # What is known

    def jobs(self) -> list[Job]:
        """All jobs, as they were when everything last came to rest."""
        return [row for row in self.rows.get("job", []) if isinstance(row, Job)]

    def is_(self, job: str, *states: State) -> Callable[[], bool]:
        """Asks whether a job is in one of some states, or settled."""
        return lambda: any(row.id == job and row.state in (*states, State.SETTLED) for row in self.jobs())

    def waits(self, job: str) -> Callable[[], bool]:
        """Asks whether a job is in the queue of a pool, or settled."""
        return lambda: (
            self.is_(job)() or job in [row.job for row in self.rows.get("claim", []) if isinstance(row, Claim)]
        )

    def made(self, job: str) -> Callable[[], bool]:
        """Asks whether a worker was made for a job, or it is settled."""
        hand = self.site.drivers.hands["factory"]
        return lambda: self.is_(job)() or any(self.site.unit(worker).lease.job == job for worker in hand.made)

    def rest(self) -> bool:
        """Asks whether no unit is in use or on its way: what there is, is idle."""
        return all(unit.state in (UnitState.IDLE, UnitState.GONE) for unit in self.units())

    def ready(self) -> bool:
        """Asks whether a worker and a resource are there that were made ahead of need, or are had by a job already."""
        there = {unit.is_a for unit in self.units() if unit.cleaning.until or unit.lease.leases}
        return len(there) == 2 and self.rest()

    def apart(self) -> list[str]:
        """The units that are in quarantine."""
        return [unit.id for unit in self.units() if unit.state is UnitState.QUARANTINED]

    def empty(self) -> bool:
        """Asks whether there is no unit any more."""
        return all(unit.state is UnitState.GONE for unit in self.units())

    def nothing_is_kept(self, job: str) -> Callable[[], bool]:
        """Asks whether a job says that its outputs are gone, and no row knows of any."""
        return lambda: (
            any(row.id == job and row.end.outputs_gone for row in self.jobs())
            and not any(self.rows.get(kind) for kind in ("artifact", "retention"))
        )

    def units(self) -> list[Unit]:
        """All units, as they were when everything last came to rest."""
        return [row for row in self.rows.get("unit", []) if isinstance(row, Unit)]

    # What happens

    def live(self) -> None:
        """Let everything happen until all is over, then let what is late come, and look that it stays over."""
        for _ in range(SWEEPS):
            self._come_to_rest()
            if self._is_over():
                break
            self._pass_time(MINUTE)
            self.minutes += 1
        self.watch.over(self)
        self.is_late = True
        self._pass_time(LATE)
        self._come_to_rest()
        self.watch.over(self)

    def _is_over(self) -> bool:
        return self.script_over and not self.watch.left(self)

    def _pass_time(self, seconds: int) -> None:
        self.site.world.time += timedelta(seconds=seconds)
        for agent in list(self.agents.values()):
            if agent.worker in self._made() and not self._is_silent(agent):
                agent.heard = -1
                if agent.did:
                    self._agent(agent, "heartbeat", {})
        self._rules()

    def _rules(self) -> None:
        """What rules do each minute; of one, which does so every five, it is enough that it is soon enough."""
        self.runtime.sweep()
        if self.site.hub.fake.deliveries:
            self.runtime.look()

    def _come_to_rest(self) -> None:
        for _ in range(STEPS):
            if not self.runtime.busy:
                self._rests(self)
            if not (self.runtime.deliver() or self.runtime.settle() or self._act()):
                self._look()
                if not self._read_on():
                    return
        raise AssertionError("the messages never end")

    def _meanwhile(self) -> None:
        """All that can happen while one function stands still."""
        self._come_to_rest()
        self._rules()
        self._come_to_rest()

    def _look(self) -> None:
        found: dict[str, list[Row]] = {}
        with self.site.unseen():
            for item in self.site.rows():
                row = raw.row_of(item)
                found.setdefault(row.kind, []).append(row)
        self.rows = found
        self.watch.look(found)

    def _read_on(self) -> bool:
        """Let the users take their next step, if it is time for it."""
        if self.script_over or "user" in self.runtime.busy or not self._until():
            return False
        try:
            self._until = next(self.script)
        except StopIteration:
            self.script_over = True
        return True

    # What agents do

    def _made(self) -> Mapping[str, Any]:
        return self.site.drivers.hands["factory"].made

    def _is_silent(self, agent: Agent) -> bool:
        number = list(self.agents).index(agent.worker)
        return agent.ended or number in self.mute or (number in self.silent and agent.did > 0)

    def _act(self) -> bool:
        """Let one agent take its next step. False when none has one."""
        for worker, order in list(self._made().items()):
            agent = self.agents.setdefault(worker, Agent(worker, order.key))
            if worker not in self.runtime.busy and not self._is_silent(agent) and self._step(agent):
                return True
        return False

    def _step(self, agent: Agent) -> bool:
        lines = [{"time": "2026-01-01T00:00:00Z", "stream": "stdout", "task": 0, "payload": each} for each in LINES]
        steps: list[tuple[str, Any]] = [("inputs", {"after": after}) for after in ("", "1:") if agent.inputs]
        steps.append(("events", {"first": 1, "events": lines[:2]}))
        steps.append(("events", {"first": 2, "events": lines[1:]}))  # as after an answer that was lost
        if self.exchanges:
            steps.append(("store/put", {"name": "said", "value": "hunter3", "secret": True}))
            steps += [("store/get", {"name": name}) for name in ("said", "token")]
        if self.asks:
            steps += [("store/get", {"name": "GITHUB_TOKEN"})] * 2  # after the first, one is made
        if agent.did == 0:
            return self._hello(agent)
        if agent.did <= len(steps):
            self._agent(agent, *steps[agent.did - 1])
            return True
        if self._is_held(agent.job) and not agent.cancelled:
            return False
        if self.writes_outputs and self._upload(agent, agent.did - len(steps)):
            return True
        number = list(self.agents).index(agent.worker)
        result = "cancelled" if agent.cancelled else "failed" if number in self.failing else "succeeded"
        if number in self.broken:
            reply = self._agent(agent, "finish", {"result": "broken", "broken": "no disk"})
        else:
            reply = self._agent(agent, "finish", {"result": result, "exit_code": 0})
        if reply.status == 200 and agent.reuse:
            agent.rest()
        else:
            agent.ended = not reply.should_be_repeated
        return True

    def _is_held(self, id: str) -> bool:
        if not self.held_names:
            return id in self.held
        with self.site.unseen():
            job = self.site.on.store.get(job_key(id), Job)
        return id in self.held or (job is not None and job.name in self.held_names)

    def _hello(self, agent: Agent) -> bool:
        """Ask for a job. An agent that was told to ask again has something to hear when its worker's row has changed.

        In truth it asks every few seconds; here the clock stands still until everything rests.
        """
        if self.site.unit(agent.worker).version == agent.heard:
            return False
        before = self.runtime.seam.events
        reply = self._agent(agent, "", agent.hello())
        if reply.status == 200 and reply.body.get("idle"):
            is_stale = self.runtime.seam.events > before + 1  # others went on while it was answered
            agent.did, agent.heard = 0, -1 if is_stale else self.site.unit(agent.worker).version
        elif reply.status == 200:
            agent.job, agent.reuse, agent.inputs = reply.body["job"], reply.body["reuse"], reply.body["inputs"]
        return True

    def _upload(self, agent: Agent, step: int) -> bool:
        """One of the two steps of sending an output; False when it was sent."""
        if step == 1:
            file = {"path": "/work/result", "size": len(BYTES), "sha256": DIGEST}
            reply = self._agent(agent, "outputs", {"files": [file]})
            if reply.status == 200:
                (upload,) = reply.body["uploads"]
                agent.output = upload["id"]
                name = urlsplit(upload["url"]).path.removeprefix("/outputs/")
                self.site.clients["s3"].put_object(Bucket="outputs", Key=name, Body=BYTES, ChecksumSHA256=CHECKSUM)
        elif step == 2:
            self._agent(agent, "outputs/commit", {"ids": [agent.output]})
        return step <= 2

    def _agent(self, agent: Agent, what: str, body: Any) -> Reply:
        """One request of an agent. It repeats what was not answered, and ends when it is told that it is over."""
        path = f"/v1/agent/jobs/{agent.job}/{what}" if what else "/v1/agent/hello"
        reply = self.runtime.ask(agent.worker, "POST", path, agent.token if what else "", body)
        if reply.status == 200:
            agent.did += what != "heartbeat"
            if what == "inputs" and body["after"]:
                assert [each["path"] for each in reply.body["inputs"]] == ["/input/first/work/result"]
            self.told |= {reply.body["value"]} if what == "store/get" and reply.body.get("secret") else set()
            agent.cancelled |= bool(what != "" and reply.body.get("cancel"))
        elif not reply.should_be_repeated:
            agent.ended = True
        return reply
