"""Runs tests against mutants: in one pytest session that has collected everything, each mutant in a forked child."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tests.mutate import plant, watch
from tests.mutate.effects import BEFORE
from tests.mutate.record import ENDLESS, short
from tests.mutate.sites import Mutant

PATIENCE = 20.0
"""Seconds that a test may take beyond six times of what it usually takes, before its mutant never ends."""

BUDGET = 30.0
"""Seconds of tests, as they usually take, that are run against one mutant: what only slower ones notice is not safe."""

RACES = re.compile(r"test_races\.py|test_between_reads\.py")
"""Asked first where a write has lost its condition, or reads are in another order: only somebody who moves in between
notices that."""

MEMORY = 6 << 30
"""Bytes of address space; a mutant that never ends may ask for more."""


@dataclass(frozen=True)
class Profile:
    """What a test takes, and what it evaluates."""

    seconds: float
    seen: frozenset[str]


Profiles = dict[str, Profile]


@dataclass
class _Child:
    """A forked process: what it is for, where it reports, and which test it runs since when."""

    pid: int
    pipe: Connection
    folder: Path
    done: Callable[[str | None], None]
    test: str = ""
    since: float = 0.0


class Hunter:
    """Forks children from a session that has collected its tests."""

    def __init__(self, session: pytest.Session, processes: int, budget: float) -> None:
        self.items = {item.nodeid: item for item in session.items if "test_a_story_does_not" not in item.nodeid}
        self.named: dict[str, list[str]] = defaultdict(list)
        for nodeid in self.items:
            self.named[short(nodeid)].append(nodeid)
        self.profiles: Profiles = {}
        self._processes, self._budget = processes, budget
        self._children: dict[Connection, _Child] = {}

    def profile(self, mutants: Sequence[Mutant], known: Profiles) -> list[str]:
        """Run tests without a mutant, and note what they evaluate. Returns the tests that fail all the same.

        Those that are `known` already are not run again.
        """
        self.profiles |= {name: known[name] for name in self.items if name in known}
        names = sorted(self.items.keys() - known.keys())
        shares = [names[at :: self._processes] for at in range(self._processes)]
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, str(at)) for at in range(len(shares))]
            for share, path in zip(shares, paths, strict=True):
                self._fork(partial(self._watched, share, mutants, path), lambda _: None)
            while self._children:
                self._listen(patient=True)
            told = {name: each for path in paths for name, each in json.loads(path.read_text()).items()}
        self.profiles |= {
            name: Profile(seconds, frozenset(seen)) for name, (good, seconds, seen) in told.items() if good
        }
        return [name for name, (good, _, _) in told.items() if not good]

    def _watched(self, names: Sequence[str], mutants: Sequence[Mutant], path: Path, pipe: Connection) -> str | None:
        watch.watch(mutants)
        told = {}
        for at, name in enumerate(names):
            watch.seen.clear()
            begun = time.monotonic()
            good = self._passes(name, names[at + 1] if at + 1 < len(names) else None)
            told[name] = good, time.monotonic() - begun, sorted(watch.seen)
        path.write_text(json.dumps(told))
        return None

    def called(self, names: Iterable[str]) -> list[str]:
        """The tests of these names, with all their parameters."""
        return [nodeid for name in names for nodeid in self.named.get(name, ())]

    def try_(self, mutant: Mutant, names: Iterable[str], done: Callable[[str | None], None]) -> None:
        """Run tests against a mutant until one notices; `done` is told which, or None. Waits for a free process."""
        chosen = [name for name in names if name in self.items]
        if not chosen:
            done(None)
            return
        while len(self._children) >= self._processes:
            self._listen()
        self._fork(partial(self._hunted, mutant, chosen), done)

    def finish(self) -> None:
        """Wait for all that is under way."""
        while self._children:
            self._listen()

    def likely(self, mutant: Mutant) -> list[str]:
        """The tests that can notice a mutant, the fastest first."""
        sign = f"{mutant.module} {mutant.watched} {mutant.when}"
        names = [name for name, profile in self.profiles.items() if sign in profile.seen]
        is_race = mutant.how == "unconditional" or mutant.how.startswith(BEFORE)
        races = [name for name in names if is_race and RACES.search(name)]
        names.sort(key=lambda name: (name not in races, self.profiles[name].seconds))
        spent = list(accumulate(self.profiles[name].seconds for name in names))
        return [name for name, seconds in zip(names, spent, strict=True) if seconds <= self._budget]

    def _hunted(self, mutant: Mutant, names: Sequence[str], pipe: Connection) -> str | None:
        plant.plant(mutant)
        for at, name in enumerate(names):
            pipe.send(("runs", name))
            if not self._passes(name, names[at + 1] if at + 1 < len(names) else None):
                return name
        return None

    def _passes(self, name: str, after: str | None) -> bool:
        following = self.items[after] if after else None
        reports = runtestprotocol(self.items[name], log=False, nextitem=following)
        return not any(report.failed for report in reports)

    def _fork(self, work: Callable[[Connection], str | None], done: Callable[[str | None], None]) -> None:
        mine, its = Pipe(duplex=False)
        folder = Path(tempfile.mkdtemp(prefix="mut-", dir="/tmp"))
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            _be_a_child(folder, its, work)
        its.close()
        with suppress(OSError):  # it may have done so itself, or be gone
            os.setpgid(pid, pid)
        self._children[mine] = _Child(pid, mine, folder, done, since=time.monotonic())

    def _listen(self, *, patient: bool = False) -> None:
        """Hear what the children say; end those whose test takes too long."""
        for pipe in wait(list(self._children), timeout=1.0):
            child = self._children[pipe]  # type: ignore[index]
            try:
                what, name = child.pipe.recv()
            except EOFError:
                what, name = "ended", child.test  # it died of the mutant
            if what == "runs":
                child.test, child.since = name, time.monotonic()
            else:
                self._end(child, name)
        for child in [] if patient else list(self._children.values()):
            usual = self.profiles.get(child.test, Profile(2.0, frozenset())).seconds
            if time.monotonic() - child.since > PATIENCE + 6 * usual:
                self._end(child, ENDLESS + child.test)

    def _end(self, child: _Child, name: str | None) -> None:
        del self._children[child.pipe]
        child.pipe.close()
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)
        shutil.rmtree(child.folder, ignore_errors=True)
        child.done(name)


def _be_a_child(folder: Path, pipe: Connection, work: Callable[[Connection], str | None]) -> None:
    """What a child does; it never returns."""
    os.setpgrp()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    for name in ("TMPDIR", "PYTEST_DEBUG_TEMPROOT", "HYPOTHESIS_STORAGE_DIRECTORY"):
        os.environ[name] = str(folder)
    tempfile.tempdir = str(folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    told: str | None = "planting"
    try:
        told = work(pipe)
    finally:
        pipe.send(("ended", told))
        time.sleep(60)  # to be killed, with all that it has started


class Session:
    """The pytest plugin: once everything is collected, `hunt` is called in the place of running it."""

    def __init__(self, processes: int, budget: float, hunt: Callable[[Hunter], None]) -> None:
        self._processes, self._budget, self._hunt = processes, budget, hunt

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        self._hunt(Hunter(session, self._processes, self._budget))
        return True


def session(paths: Iterable[str], processes: int, hunt: Callable[[Hunter], None], budget: float = BUDGET) -> None:
    """Collect tests, and hunt with them."""
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-s", "-qq", "--hypothesis-seed=0", "--no-header", "-m", ""]
    code = pytest.main([*options, *paths], plugins=[Session(processes, budget, hunt)])
    if code:
        raise SystemExit(f"the tests cannot be collected: {code!r}")


def folders() -> Iterator[str]:
    """Where the tests are that run what is mutated, in this process, fast; not those whose subject is another test."""
    names = ("domain", "usecases", "controllers", "contracts", "functions", "stored", "adapters", "github", "attacks")
    yield from (f"tests/{name}" for name in names)
    yield from ("tests/model/test_traces.py", "tests/simulation/test_found.py", "tests/simulation/test_simulation.py")
