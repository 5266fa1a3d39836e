"""Types the commands of a page of the documentation, in the page's order, with real things in place of placeholders."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from penstock.cli.config import LOCAL, Profile, save_profile
from tests.docs import shell
from tests.docs.shell import ROOT, Line
from tests.e2e.conftest import WAIT_SECONDS, Local

SET_BY = "export PENSTOCK_"
AT_ONCE = 4
"""Pages. Most of their time is that of jobs, which wait for each other's machines."""

Words = Mapping[str, str | Callable[[], str]]
"""What stands in place of a placeholder, or of any other part of a line. What is called is made only then."""


@dataclass
class World:
    """What the reader of one page has: a folder with files, a profile for the service, and AWS settings."""

    page: str
    local: Local
    bin: Path
    ends: ExitStack = field(default_factory=ExitStack)
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        home = self.folder.parent / "home"
        running = self.local.running
        save_profile(home / ".config/penstock/config.toml", LOCAL, Profile(running.url, running.token))
        self.environment |= self.local.environment() | self.local.deployer()
        self.environment |= {"HOME": str(home), "PENSTOCK_STATE": str(self.local.place.root)}
        self.environment["PATH"] = f"{self.bin}:{os.environ['PATH']}"
        self.environment["PYTHONPATH"] += f":{self.folder}"
        for name in ("PENSTOCK_URL", "PENSTOCK_TOKEN"):
            del self.environment[name]  # readers have a profile

    @property
    def folder(self) -> Path:
        """Where the reader types."""
        return self.local.folder

    @property
    def name(self) -> str:
        """A word for this page: what is named by it is no other page's."""
        return re.sub(r"\W+", "-", self.page.removeprefix("docs/").removesuffix(".md").lower())

    def good(self, *words: str) -> str:
        """What a command prints that has to succeed, typed before the page's."""
        done = self.type(shlex.join(["penstock", *words]))
        assert done.returncode == 0, f"{self.page}, before its commands: {shlex.join(words)}\n{done.stdout}"
        return done.stdout

    def type(self, text: str) -> subprocess.CompletedProcess[str]:
        """Type a line, and agree to whatever is asked. Standard error goes to where standard output goes."""
        started = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", text],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = started.communicate("y\n", timeout=WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(started.pid, signal.SIGKILL)
            said = started.communicate()[0] + f"\nit had not ended after {WAIT_SECONDS} s"
        return subprocess.CompletedProcess(text, started.returncode, said)

    def set(self, text: str) -> None:
        """What a line with `export` sets."""
        for word in shlex.split(text)[1:]:
            name, _, value = word.partition("=")
            self.environment[name] = value


@dataclass(frozen=True)
class Typed:
    """A line of a page as it was typed, and what came of it."""

    line: str
    text: str
    code: int
    said: str


@dataclass(frozen=True)
class Read:
    """All that was typed for a page, and the placeholders that the page does not have."""

    typed: list[Typed]
    unused: list[str]


Setup = Callable[[World], Words]


@dataclass(frozen=True)
class Reader:
    """Reads pages: knows what each assumes, names in all of them, lines that are not typed, and what is read last."""

    setups: Mapping[str, Setup]
    everybody: Setup
    left_out: Mapping[str, str]
    last: tuple[str, ...]

    def read(self, local: Local, folder: Path, template: Path, pages: set[str]) -> dict[str, Read | BaseException]:
        """Several pages at a time, each in a copy of the template; then, one by one, those that disturb others."""
        binary = command(folder)
        order = [*self.setups, *sorted(pages)]
        first = sorted(pages - set(self.last), key=order.index)
        todo: dict[str, Future[Read]] = {}
        for at_once, several in ((AT_ONCE, first), (1, [each for each in self.last if each in pages])):
            with ThreadPoolExecutor(at_once) as pool:
                for page in several:
                    todo[page] = pool.submit(self._read, page, local, folder, template, binary)
        return {page: done.exception() or done.result() for page, done in todo.items()}

    def _read(self, page: str, local: Local, folder: Path, template: Path, binary: Path) -> Read:
        own = folder / re.sub(r"\W", "_", page)
        own.mkdir()
        shutil.copytree(template, own / "folder")
        world = World(page, dataclasses.replace(local, folder=own / "folder"), binary)
        with world.ends:
            found = self.setups.get(page, nothing)(world)
            words = {**self.everybody(world), **found}
            used: set[str] = set()
            return Read(list(self._typed(world, words, used)), [each for each in found if each not in used])

    def _typed(self, world: World, words: Words, used: set[str]) -> Iterator[Typed]:
        for line in of_page(world.page):
            if self.is_left_out(line):
                continue
            text = replaced(line.text, words, used)
            if line.text.startswith(SET_BY):
                world.set(text)
            else:
                done = world.type(text)
                yield Typed(line.text, text, done.returncode, done.stdout)

    def is_left_out(self, line: Line) -> bool:
        """Whether a line cannot be typed here."""
        return any(line.text.startswith(each) for each in self.left_out)


def typed_in(page: str) -> list[str]:
    """The commands of a page."""
    return [each.text for each in of_page(page) if shell.is_penstock(each)]


def nothing(world: World) -> Words:
    """A page that assumes nothing."""
    return {}


def of_page(page: str) -> list[Line]:
    """What is typed for a page."""
    return [each for each in LINES if each.page == page]


LINES = [each for each in shell.lines() if shell.is_penstock(each) or each.text.startswith(SET_BY)]
PAGES = list(dict.fromkeys(each.page for each in LINES))


def replaced(text: str, words: Words, used: set[str]) -> str:
    """A line with real things in it. Where several placeholders fit, the longest counts. Notes those it `used`."""

    def real(match: re.Match[str]) -> str:
        used.add(match[0])
        found = words[match[0]]
        return found if isinstance(found, str) else found()

    longest = sorted(words, key=len, reverse=True)
    return re.sub(rf"(?<!\w)({'|'.join(map(re.escape, longest))})(?!\w)", real, text) if longest else text


def command(folder: Path) -> Path:
    """A folder with the `penstock` command of these sources, for PATH."""
    made = folder / "bin" / "penstock"
    made.parent.mkdir()
    made.write_text(f'#!/bin/sh\nexec {sys.executable} -m penstock.cli "$@"\n')
    made.chmod(0o755)
    return made.parent


def fenced(page: str, *languages: str) -> list[str]:
    """What stands in a page's fences of some languages."""
    return list(shell.blocks(ROOT / page, *languages))
