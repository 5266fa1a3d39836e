"""Scenarios by seed with one host that jobs of two owners share: who has parts of it, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from penstock.domain.commands import AgentHost, SubmitJob
from penstock.domain.pools.pools import Pool, pool_key
from penstock.domain.units.hosts import Host, host_key
from penstock.domain.users.users import User
from penstock.kernel.errors import Refused
from penstock.testing.site import site_toml
from penstock.testing.twin import START
from penstock.usecases.jobs import submit
from penstock.usecases.site import apply
from penstock.usecases.workers import hosts, presence
from tests.model.scenario import ADA, Scenario

HOST = "bench-7"
PARTS = 3
IMAGE = f"registry.example.com/python@sha256:{'a' * 64}"
LAB = "target/lab"


def _site(parts: int) -> str:
    factory = {"driver": "hosts", "image": IMAGE}
    machine, share = {"cpus": PARTS, "memory": "12GiB"}, {"parts": parts}
    return site_toml(
        factories={"lab": factory},
        targets={"lab": {"factory": "lab", "names": [HOST], "machine": machine, "share": share}},
        wells={"locks": "lock"},
        resources={"bench": {"well": "locks", "limit": 1}},
    )


SITES = {parts: _site(parts) for parts in (2, PARTS)}
OWNERS = (ADA, User(name="eve", created=START, version=1))
AGENT = User(name=HOST, privileges=(f"host.{HOST}",), created=START, version=1)


@dataclass
class Part:
    """What the host's agent knows of one part: its worker, and how far that is."""

    worker: str = ""
    stage: Literal["working", "ended", "clean"] = "working"
    is_welcome: bool = False
    seen: int = -1
    """How many commits there were when it was told to wait."""


class SharedHost(Scenario):
    """Jobs of two owners, which take one to three parts of one host, whose agent polls for each of its parts."""

    site = SITES[PARTS]
    scripts = ("#!/bin/sh\n",) * 6
    limits: Mapping[str, int] = MappingProxyType({"resource/bench": 1})

    def _prepare(self) -> None:
        self.parts = {number: Part() for number in range(1, PARTS + 1)}
        self._poll()

    def _submit(self, script: str) -> str:
        wanted = {"r0": {"type": "bench"}} if self.dice.random() < 0.3 else None
        cpus = self.dice.choice((1, 1, 2, PARTS))
        ask = SubmitJob(script, target="lab", machine={"cpus": cpus}, resources=wanted)
        return submit.submit(self.twin.on, self.dice.choice(OWNERS), ask, None)

    def _after_a_while(self) -> None:
        """The host stays: its agent polls all the time."""
        for part in self.parts.values():
            part.seen = -1
        self._poll()

    def _operate(self) -> None:
        """Also: somebody changes into how many parts the host is divided, or pauses its target."""
        if self.dice.random() < 0.4:
            super()._operate()
            return
        self.orders -= 1
        if self.dice.random() < 0.3:
            self._alive(lambda: apply.pause(self.twin.on, LAB, paused=self.dice.random() < 0.5))
        else:
            apply.apply(self.twin.on, "admin", self.dice.choice(list(SITES.values())), "site.toml")

    def _reopen(self) -> bool:
        pool = self.store.get(pool_key(LAB), Pool)
        assert pool
        if pool.paused:
            apply.pause(self.twin.on, LAB, paused=False)
        if pool.limit < PARTS:
            apply.apply(self.twin.on, "admin", SITES[PARTS], "site.toml")
        return super()._reopen() or pool.paused or pool.limit < PARTS

    def _poll(self, number: int = 0) -> Any:
        part = self.parts.get(number, Part())
        cleaned = "nothing is left" if part.stage == "clean" else ""
        ask = AgentHost("s" * 43, "machine", worker=part.worker, stage=part.stage, cleaned=cleaned, part=number)
        return hosts.poll(self.twin.on, AGENT, HOST, ask)

    def _agents(self) -> list[str]:
        """The parts that have a worker, or are to get one, and were not told to wait since anything changed."""
        host = self.store.get(host_key(HOST), Host)
        assert host
        return [
            str(number)
            for number, part in self.parts.items()
            if part.seen < self.store.commits and (part.worker or presence.worker_on(self.twin.on, host, number))
        ]

    def _call(self, worker: str) -> None:
        """The agent of a part's worker makes its next call, or ends without a word; or the host's polls for it."""
        part = self.parts[int(worker)]
        if not part.worker or part.stage != "working":
            self._alive(lambda: self._obey(int(worker)))
        elif self.faults and self.dice.random() < 0.2:
            self.faults -= 1
            part.stage = "ended"
        else:
            self._work(part)

    def _work(self, part: Part) -> None:
        try:
            is_done = self._alive(lambda: self._finish(part.worker) if part.is_welcome else self._hello(part.worker))
        except Refused:
            part.stage = "ended"
            return
        if is_done:
            part.stage = "ended" if part.is_welcome else part.stage
            part.is_welcome = True

    def _obey(self, number: int) -> None:
        part, told = self.parts[number], self._poll(number)
        if told.do == "work":
            self.parts[number] = Part(told.worker)
        elif told.do == "clean":
            part.stage = "clean"
        elif told.do == "forget":
            self.parts[number] = Part()
        else:
            part.seen = self.store.commits
