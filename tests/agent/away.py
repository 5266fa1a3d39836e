"""`python -m tests.agent.away`: the network is away for minutes while a job runs, and comes back.

The agent is the real one, in a network of its own that a cable joins to the service's. The cable is pulled: what is
sent goes nowhere, and nobody is told, as when a switch dies. Needs root, `ip` and `unshare`. Prints what went on; fails
when something of the job is lost, or done twice, or when work outlives its lease.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock import agentfile
from tests.agent.conftest import Worker
from tests.agent.control_plane import ControlPlane, order

HERE, THERE = "192.0.2.1", "192.0.2.2"  # of the block that RFC 5737 keeps for examples
INSIDE = "PENSTOCK_AWAY"
WAIT_SECONDS = 120.0
"""For what happens after the network is back: the agent's pauses between tries are shorter."""


class Cable:
    """Two ends: one with us, one in the agent's network."""

    def __init__(self) -> None:
        self.network = self._end = f"away{os.getpid()}"

    def __enter__(self) -> Cable:
        _ip("netns", "add", self.network)
        _ip("link", "add", self._end, "type", "veth", "peer", "name", "there", "netns", self.network)
        _ip("addr", "add", f"{HERE}/30", "dev", self._end)
        _ip("-n", self.network, "addr", "add", f"{THERE}/30", "dev", "there")
        _ip("-n", self.network, "link", "set", "there", "up")
        self.plug()
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("link", "del", self._end)
        _ip("netns", "del", self.network)

    def plug(self) -> None:
        _ip("link", "set", self._end, "up")

    def pull(self) -> None:
        _ip("link", "set", self._end, "down")


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.agent.away", description=__doc__)
    asked.add_argument("--seconds", type=int, default=180, help="how long the network is away (default: %(default)s)")
    seconds = asked.parse_args().seconds
    if os.environ.get(INSIDE) is None:  # a machine's own network may have rules for what comes in: a fresh one has none
        os.execvpe("unshare", ["unshare", "--net", *sys.orig_argv], {**os.environ, INSIDE: "1"})
    _ip("link", "set", "lo", "up")
    for each in (shorter_than_the_lease, longer_than_the_lease):
        each(seconds)
    return 0


def shorter_than_the_lease(seconds: int) -> None:
    """The job goes on, ends, and all of it arrives afterwards."""
    count = seconds * 2 // 3
    script = f"for i in $(seq {count}); do echo $i; sleep 1; done; seq 100000 > out"
    with running(script, lease_seconds=seconds * 2, output_rules=["=/work/out"]) as (worker, cable):
        plane = worker.plane
        plane.wait_for_line("3")
        cable.pull()
        there, calls = len(plane.lines("stdout")), len(plane.calls)
        time.sleep(seconds)
        assert len(plane.calls) - calls <= 1, "the cable is pulled, and calls arrive"
        assert (worker.root / "work/out").exists(), "the job did not go on"
        cable.plug()
        assert worker.agents[0].wait(WAIT_SECONDS) == 0, worker.log()
        assert worker.outcome()["result"] == "succeeded", worker.outcome()
        assert plane.lines("stdout") == [str(i) for i in range(1, count + 1)]
        assert plane.outputs() == {"/work/out": "".join(f"{i}\n" for i in range(1, 100001)).encode()}
        print(f"away for {seconds} s, {there} of {count} lines there before: all there after, and the output")


def longer_than_the_lease(seconds: int) -> None:
    """The work is dead before the lease is over, without anybody telling the agent; it reports nothing afterwards."""
    lease = seconds // 2
    with running("echo $$; setsid sleep 100000 & sleep 100000", lease_seconds=lease) as (worker, cable):
        plane = worker.plane
        plane.wait_for(lambda: plane.lines("stdout"))
        process = Path("/proc", plane.lines("stdout")[0])
        assert process.exists()
        cable.pull()
        pulled = time.monotonic()
        wait_until(lambda: not process.exists(), lease)
        dead = time.monotonic() - pulled
        time.sleep(seconds - dead)
        cable.plug()
        worker.agents[0].wait(WAIT_SECONDS)
        assert not plane.finishes
        print(f"away for {seconds} s, with a lease of {lease} s: the job was dead {dead:.0f} s after the pull")


@contextlib.contextmanager
def running(script: str, **changes: object) -> Iterator[tuple[Worker, Cable]]:
    """An agent at work on the far side of a cable."""
    with tempfile.TemporaryDirectory() as folder, Cable() as cable:
        agent = Path(folder, "agent.pyz")
        agent.write_bytes(agentfile.build())
        with ControlPlane(order(script=script, timeout_seconds=86400, **changes), host=HERE) as plane:
            Path(folder, "worker").mkdir()
            worker = Worker(agent, Path(folder, "worker"), plane)
            worker.within = ["ip", "netns", "exec", cable.network]
            worker.start()
            try:
                yield worker, cable
            finally:
                worker.stop()


def wait_until(happened: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"what was waited for did not happen in {seconds} s"
        time.sleep(0.1)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


if __name__ == "__main__":
    sys.exit(main())
