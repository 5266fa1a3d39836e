"""A site with hosts, and a scripted host that dials in."""

from __future__ import annotations

from typing import Any

from penstock.domain.commands import AgentHost, Hello
from penstock.domain.jobs.jobs import Result
from penstock.domain.pools.pools import Slot, SlotState, collection
from penstock.domain.replies import HostInstruction
from penstock.domain.units.hosts import Host, host_key
from penstock.domain.users.users import User
from penstock.testing.site import site_toml
from penstock.testing.twin import START, Twin
from penstock.usecases.site import apply as site_apply
from penstock.usecases.workers import agents, hosts

LAB = site_toml(
    factories={"lab": "hosts"},
    targets={"lab": {"factory": "lab", "names": ["bench-7", "bench-8"]}},
    wells={"locks": "lock"},
    resources={"licence": {"well": "locks", "limit": 1}},
)


IMAGE = f"registry.example.com/python@sha256:{'a' * 64}"

SHARED = {
    "factory": "lab",
    "names": ["bench-7", "bench-8"],
    "machine": {"cpus": 4, "memory": "16GiB"},
    "share": True,
}
"""A target whose hosts jobs share."""

LEASE = 120


def lab(text: str = LAB) -> Twin:
    """A twin whose site has two benches, both of them away."""
    made = Twin()
    apply(made, text)
    return made


def apply(twin: Twin, text: str) -> None:
    site_apply.apply(twin.on, "admin", text, "site.toml")
    twin.run()


class Bench:
    """A host's agent by hand. It remembers its worker, as the real one does."""

    def __init__(self, twin: Twin, name: str = "bench-7", session: str = "s") -> None:
        self.twin, self.name, self.session = twin, name, session * 43
        self.user = User(name=name, privileges=(f"host.{name}",), created=START)
        self.worker, self.stage, self.key, self.cleaned = "", "working", "", ""

    def ask(self, **more: Any) -> HostInstruction:
        """Say where it is, and take in the answer."""
        given = {"worker": self.worker, "stage": self.stage, "cleaned": self.cleaned} | more
        said = hosts.poll(self.twin.on, self.user, self.name, AgentHost(self.session, "machine", **given))
        self.twin.run()
        if said.do == "work":
            self.worker, self.key, self.stage = said.worker, said.key, "working"
        elif said.do == "forget":
            self.worker, self.stage, self.cleaned = "", "working", ""
        return said

    def do(self, **more: Any) -> str:
        """What it is told to do."""
        return str(self.ask(**more).do)

    def hello(self) -> str:
        """Its worker's agent says hello; the job's id."""
        said = agents.hello(self.twin.on, Hello(self.worker, self.key, self.token))
        self.twin.run()
        return str(said.job)

    @property
    def token(self) -> str:
        return (self.worker.replace("-", "") + "t" * 43)[:60]

    def beat(self, job: str) -> None:
        """Its worker's agent says that it is there."""
        agents.heartbeat(self.twin.on, agents.authenticate(self.twin.on, job, self.token))

    def report(self, job: str, result: Result = Result.SUCCEEDED) -> None:
        caller = agents.authenticate(self.twin.on, job, self.token)
        agents.report_finished(self.twin.on, caller, result, "the script ended", 0)
        self.twin.run()

    def clean(self) -> HostInstruction:
        """The worker's agent has ended: clean up when told to, and say so."""
        self.stage = "ended"
        assert self.do() == "clean"
        self.stage, self.cleaned = "clean", "nothing is left"
        return self.ask()

    def run(self) -> str:
        """One job from its order to a clean machine."""
        assert self.do() == "work"
        job = self.hello()
        self.report(job)
        assert self.clean().do == "forget"
        return job


class Part(Bench):
    """One part of a host that jobs share, by hand."""

    def __init__(self, twin: Twin, name: str, part: int) -> None:
        super().__init__(twin, name, "s")
        self.part = part

    def ask(self, **more: Any) -> HostInstruction:
        return super().ask(part=self.part, **more)


def states(twin: Twin, pool: str = "target/lab") -> dict[str, str]:
    """Where each slot of a pool is."""
    found = (twin.store.find(collection(pool), f"{state}#", Slot) for state in SlotState)
    return {slot.name: slot.state.value for slots in found for slot in slots}


def host_of(twin: Twin, name: str = "bench-7") -> Host:
    found = twin.store.get(host_key(name), Host)
    assert found
    return found
