"""Which process groups an agent kills: those of its job, and none that has only got the id of such a one. [UNIT-2]"""

from __future__ import annotations

import os
import signal

import pytest

from penstock.agent import machine
from penstock.agent.machine import JobProcesses, Process

GROUP = 4000
Table = dict[int, Process]
AGENT: Table = {os.getpid(): Process(1, os.getpgrp())}


class Kernel:
    """What a machine shows look by look, the last for ever, and what is killed there. `gone`: groups of nobody."""

    def __init__(self, *looks: Table, gone: set[int] | None = None) -> None:
        self.looks = list(looks)
        self.gone = gone or set()
        self.killed: list[int] = []

    def look(self) -> Table:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def kill(self, process: int, number: int) -> None:
        if process < 0:
            self.kill_group(-process, number)

    def kill_group(self, group: int, number: int) -> None:
        assert number == signal.SIGKILL
        self.killed.append(group)
        if group in self.gone:
            raise ProcessLookupError


def on(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> JobProcesses:
    monkeypatch.setattr(machine.sys, "platform", "linux")
    monkeypatch.setattr(machine, "_read_processes", kernel.look)
    monkeypatch.setattr(machine.os, "killpg", kernel.kill_group)
    monkeypatch.setattr(machine.os, "kill", kernel.kill)
    monkeypatch.setattr(machine.time, "sleep", lambda _: None)
    return JobProcesses("w-1")


def child(*, ended: bool) -> Table:
    return AGENT | {GROUP: Process(os.getpid(), GROUP, has_ended=ended)}


def test_the_group_of_a_child_is_killed_also_if_the_child_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(child(ended=True), {})
    assert on(kernel, monkeypatch).kill_all() == []
    assert set(kernel.killed) == {GROUP}


def test_a_group_of_long_ago_is_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's group may have its id by now: the kernel gives ids again."""
    kernel = Kernel(child(ended=False), {})
    processes = on(kernel, monkeypatch)
    assert processes.all_of_job() == [GROUP]
    assert processes.kill_all() == []
    assert kernel.killed == []


def test_a_group_that_is_gone_is_not_killed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(child(ended=False), {}, gone={GROUP})
    assert on(kernel, monkeypatch).kill_all() == []
    assert kernel.killed == [GROUP]


def test_a_group_that_lives_is_killed_until_nothing_is_seen_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What forks and ends over and over is seen by none of three looks."""
    kernel = Kernel(child(ended=True), {}, {}, {})
    on(kernel, monkeypatch).kill_all()
    assert kernel.killed == [GROUP] * (machine.LOOKS - 1)


def test_the_agents_own_group_is_never_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(AGENT | {GROUP: Process(os.getpid(), os.getpgrp())}, {})
    on(kernel, monkeypatch).kill_all()
    assert kernel.killed == []
