"""Which tests notice the mutants of each function, and which mutants no test can notice.

Each kind of mutants has its record: `tests/mutants.txt` and `tests/mutants_effects.txt`. A record has a block for each
module, and below it a line for each function: its name, and a digest of its text and of its mutants. Below that stand
the names of the tests that noticed them, without file and parameters, so that a test may move; then the exceptions:
mutants with which a test never ends, and mutants that no test notices. All other mutants of a function with that digest
are noticed by one of its tests.

A function may move, too: it is found by its digest in any module, and `make mutate` writes the record anew without
trying anything. Where names in it changed, `python -m tests.mutate --carry REVISION` finds it.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from tests.mutate import sites
from tests.mutate.kinds import CONDITIONS, Kind
from tests.mutate.scope import ROOT
from tests.mutate.sites import Mutant

HEAD = "# Written by `make mutate`, read by `make check`; tests/mutate/record.py describes it.\n"
ENDLESS = "never ends: "
OPEN = "not noticed: "

Function = tuple[str, str]
Key = tuple[str, str, str]


@dataclass
class Entry:
    """What is known of the mutants of one function."""

    digest: str = ""
    tests: set[str] = field(default_factory=set)
    endless: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)

    def add(self, line: str) -> None:
        """Take one line of the record."""
        if line.startswith(ENDLESS):
            self.endless.add(line.removeprefix(ENDLESS))
        elif line.startswith(OPEN):
            self.open.add(line.removeprefix(OPEN))
        else:
            self.tests.add(line)

    def lines(self) -> Iterator[str]:
        """The lines of the record below the function's own."""
        yield from sorted(self.tests)
        yield from (ENDLESS + name for name in sorted(self.endless))
        yield from (OPEN + name for name in sorted(self.open))


@dataclass
class Record:
    """An entry for each function that has mutants. `hints` are tests of entries that are being made again."""

    entries: dict[Function, Entry] = field(default_factory=dict)
    hints: dict[Function, set[str]] = field(default_factory=dict)
    untried: dict[Function, set[str]] = field(default_factory=lambda: defaultdict(set))
    kind: Kind = CONDITIONS

    @classmethod
    def load(cls, path: Path | None = None, kind: Kind = CONDITIONS) -> Record:
        """The record as it is kept, each entry with its function as it is now."""
        path = path or kind.record
        made = cls.parse(path.read_text(encoding="utf-8") if path.exists() else "", kind)
        made._follow()
        made._drop_equivalent()
        return made

    @classmethod
    def parse(cls, text: str, kind: Kind = CONDITIONS) -> Record:
        """The record as it is written."""
        made, module, entry = cls(kind=kind), "", Entry()
        for line in text.splitlines():
            if line.startswith("    "):
                entry.add(line.strip())
            elif line.startswith("  "):
                function, _, digest = line.strip().partition(" ")
                entry = made.entries.setdefault((module, function), Entry(digest))
            elif not line.startswith("#"):
                module = line
        return made

    def _follow(self) -> None:
        """Give functions that moved their entries. The tests of others that are gone are hints."""
        gone = {key: entry for key, entry in self.entries.items() if key not in mutated(self.kind)}
        moved = {entry.digest: key for key, entry in gone.items()}
        for function in mutated(self.kind).keys() - self.entries.keys():
            was = moved.pop(digest(*function, self.kind), None)
            if was:
                self.entries[function] = self.entries.pop(was)
            else:
                self.hints[function] = {
                    test for key, entry in gone.items() if key[1] == function[1] for test in entry.tests
                }

    def _drop_equivalent(self) -> None:
        """What is listed as equivalent by now is not noticed for good, and owed no test."""
        for module, function, name in equivalents(self.kind):
            self.entries.get((module, function), Entry()).open.discard(name)

    def save(self, path: Path | None = None) -> None:
        """Write the entries of the functions that there are, in their order. One not yet tried whole has no digest."""
        lines, last = [HEAD], ""
        for module, function in mutated(self.kind):
            entry = self.entries.get((module, function)) or Entry(tests=self.hints.get((module, function), set()))
            lines += [f"{module}\n"] * (module != last)
            if self.untried.get((module, function)):
                entry = replace(entry, digest="", tests=entry.tests | self.hints.get((module, function), set()))
            lines += [f"  {function} {entry.digest}".rstrip() + "\n", *(f"    {line}\n" for line in entry.lines())]
            last = module
        (path or self.kind.record).write_text("".join(lines), encoding="utf-8")

    def is_known(self, mutant: Mutant) -> bool:
        """Whether a mutant was tried, with its function as it is now, and under the name that it has now."""
        function = mutant.key[:2]
        entry = self.entries.get(function, Entry())
        exceptions = entry.open | entry.endless
        names = {each.name for each in mutated(self.kind)[function]}
        return entry.digest == digest(*function, self.kind) and exceptions <= names

    def is_open(self, mutant: Mutant) -> bool:
        """Whether no test noticed a mutant when it was tried."""
        return mutant.name in self.entries.get(mutant.key[:2], Entry()).open

    def is_endless(self, mutant: Mutant) -> bool:
        """Whether a test never ended with a mutant."""
        return mutant.name in self.entries.get(mutant.key[:2], Entry()).endless

    def is_noticed(self, mutant: Mutant) -> bool:
        """Whether a test noticed a mutant, with its function as it is now."""
        return self.is_known(mutant) and not self.is_open(mutant) and mutant.key not in equivalents(self.kind)

    def begin(self, todo: Iterable[Mutant], *, anew: bool = False) -> None:
        """Mutants are about to be tried. Entries of functions that changed are made again, with `anew` all of them."""
        for mutant in todo:
            function = mutant.key[:2]
            if function not in self.untried and (anew or not self.is_known(mutant)):
                self.hints[function] = self.hints.get(function, set()) | self.entries.get(function, Entry()).tests
                self.entries[function] = Entry(digest(*function, self.kind))
            self.untried[function].add(mutant.name)

    def tried(self, mutant: Mutant, test: str | None) -> None:
        """A mutant was tried: the node id of the test that noticed it, or None."""
        entry = self.entries[mutant.key[:2]]
        self.untried[mutant.key[:2]].discard(mutant.name)
        entry.open.discard(mutant.name)
        if test is None:
            entry.open.add(mutant.name)
            return
        entry.tests.add(short(test.removeprefix(ENDLESS)))
        if test.startswith(ENDLESS):
            entry.endless.add(mutant.name)

    def candidates(self, mutant: Mutant) -> list[str]:
        """Names of tests that may notice a mutant: those that noticed mutants of its function."""
        function = mutant.key[:2]
        return sorted(self.entries.get(function, Entry()).tests | self.hints.get(function, set()))


def short(test: str) -> str:
    """The name of a test without its file and its parameters; a state machine's is that of its class."""
    name = test.partition("[")[0]
    return name.removesuffix("::runTest").rpartition("::")[2]


@cache
def defined() -> dict[str, list[str]]:
    """The files that define each test, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for one, other in re.findall(
            r"^ *(?:async )?def (test_\w+)|^(\w+) = .*\.TestCase$", path.read_text(encoding="utf-8"), re.MULTILINE
        ):
            found[one or other].append(path.relative_to(ROOT).as_posix())
    return found


@cache
def mutated(kind: Kind = CONDITIONS) -> dict[Function, list[Mutant]]:
    """The functions that have mutants of a kind, in their order, each with its mutants."""
    found: dict[Function, list[Mutant]] = {}
    for mutant in kind.every():
        found.setdefault(mutant.key[:2], []).append(mutant)
    return found


def digest(module: str, function: str, kind: Kind = CONDITIONS) -> str:
    """Changes with a function's text, its words and layout aside, and with the mutants that are to be noticed."""
    some = mutated(kind)[module, function]
    ways = [f"{mutant.how.split()[0]} {mutant.key in equivalents(kind)}" for mutant in some]
    return hashlib.sha256("\n".join([sites.texts(module)[function], *ways]).encode()).hexdigest()[:8]


def equivalents(kind: Kind = CONDITIONS) -> dict[Key, str]:
    """The mutants that no test can notice, each with the reason."""
    return _listed(kind.equivalent, "equivalent", kind.of)


def owed(kind: Kind = CONDITIONS) -> dict[Key, str]:
    """The mutants that no test notices yet, as the list of their kind says."""
    return _listed(kind.owed, "owed", kind.of)


@cache
def _listed(path: Path, name: str, of: str) -> dict[Key, str]:
    found: dict[Key, str] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get(name, []):
        for how in entry["how"]:
            found[entry["module"], entry["function"], f"{entry[of]} :: {how}"] = entry.get("why", "")
    return found


def gaps(record: Record) -> list[str]:
    """What is missing in the record, or in it for nothing, a line each."""
    kind = record.kind
    mutants = {mutant.key: mutant for some in mutated(kind).values() for mutant in some}
    same, debt = equivalents(kind), owed(kind)
    known = {key for key, mutant in mutants.items() if record.is_known(mutant)}
    unnoticed = {key for key, mutant in mutants.items() if record.is_open(mutant)}
    told = [f"{module}:{function} changed since it was mutated" for module, function, _ in mutants.keys() - known]
    told += [f"{key} has no test that notices it" for key in unnoticed - debt.keys()]
    told += [f"{key} is owed a test, and not in the code" for key in debt.keys() - mutants.keys()]
    told += [f"{key} is owed a test, and noticed" for key in (debt.keys() & known) - unnoticed]
    told += [f"{function} is in the record, and not in the code" for function in record.entries.keys() - mutated(kind)]
    told += [f"{key} is listed as equivalent, and not in the code" for key in same.keys() - mutants.keys()]
    return sorted(set(told))
