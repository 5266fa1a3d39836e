"""Which test notices which mutant, and which mutants no test can notice."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tests.mutate import sites
from tests.mutate.sites import Mutant

PATH = Path(__file__).parents[1] / "mutants.json"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
OWED = Path(__file__).with_name("owed.toml")

FEW = 3
"""How many tests of a function are asked before it is known which evaluate what; some of them are slow."""

Key = tuple[str, str, str]


@dataclass
class Record:
    """Tests by mutant, and for each function that has conditions what it was when they were found.

    `open` are mutants for which no test was found: each wants a test, or a reason in equivalent.toml. `hints` are the
    tests that noticed a function's mutants before it changed; they are not kept.
    """

    killers: dict[Key, str] = field(default_factory=dict)
    digests: dict[tuple[str, str], str] = field(default_factory=dict)
    open: set[Key] = field(default_factory=set)
    hints: dict[Key, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path = PATH) -> Record:
        made = cls()
        for module, functions in json.loads(path.read_text(encoding="utf-8") if path.exists() else "{}").items():
            for function, told in functions.items():
                made.digests[module, function] = told["digest"]
                made.killers |= {(module, function, name): test for name, test in told["noticed by"].items()}
                made.open |= {(module, function, name) for name in told.get("not noticed", ())}
        return made

    def save(self, path: Path = PATH) -> None:
        """Write what is known of the mutants that there are, in their order; what is known of others is forgotten."""
        told: dict[str, dict[str, Any]] = {}
        same = equivalents()
        for mutant in sites.every():
            digest = self.digests.get((mutant.module, mutant.function), "")
            into = told.setdefault(mutant.module, {})
            one = into.setdefault(mutant.function, {"digest": digest, "noticed by": {}})
            if mutant.key in self.killers:
                one["noticed by"][mutant.name] = self.killers[mutant.key]
            elif mutant.key in self.open and mutant.key not in same:
                one.setdefault("not noticed", []).append(mutant.name)
        path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def is_known(self, mutant: Mutant) -> bool:
        """Whether the record has a mutant, as its function is now."""
        digest = sites.digests(mutant.module)[mutant.function]
        has = mutant.key in self.killers or mutant.key in self.open
        return has and self.digests.get((mutant.module, mutant.function)) == digest

    def begin(self, todo: Iterable[Mutant]) -> None:
        """Forget what is known of functions that have changed, but for hints: their mutants are about to be tried."""
        for mutant in todo:
            function = mutant.module, mutant.function
            digest = sites.digests(mutant.module)[mutant.function]
            if self.digests.get(function) == digest:
                continue
            self.digests[function] = digest
            self.hints |= {key: test for key, test in self.killers.items() if key[:2] == function}
            self.killers = {key: test for key, test in self.killers.items() if key[:2] != function}
            self.open = {key for key in self.open if key[:2] != function}

    def candidates(self, mutant: Mutant) -> list[str]:
        """Tests that may notice a mutant: the one that did, and some of those that noticed others of its function."""
        known = self.hints | self.killers
        own = [known[mutant.key]] if mutant.key in known else []
        others = dict.fromkeys(test for key, test in known.items() if key[:2] == mutant.key[:2])
        return list(dict.fromkeys([*own, *islice(others, FEW)]))


def equivalents() -> dict[Key, str]:
    """The mutants that no test can notice, each with the reason."""
    return _listed(EQUIVALENT, "equivalent")


def owed() -> dict[Key, str]:
    """The mutants that no test notices yet: tests/mutate/owed.toml."""
    return _listed(OWED, "owed")


def _listed(path: Path, name: str) -> dict[Key, str]:
    found: dict[Key, str] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get(name, []):
        for how in entry["how"]:
            found[entry["module"], entry["function"], f"{entry['condition']} :: {how}"] = entry.get("why", "")
    return found


def gaps(record: Record, mutants: Iterable[Mutant]) -> list[str]:
    """What is missing in the record, or in it for nothing, a line each."""
    there = {mutant.key for mutant in mutants}
    same, debt = equivalents(), owed()
    told = [f"{key} has no test that notices it" for key in there - record.killers.keys() - same.keys() - debt.keys()]
    told += [f"{key} is owed a test, and not in the code" for key in debt.keys() - there]
    told += [f"{key} is owed a test, and noticed" for key in debt.keys() & (record.killers.keys() | same.keys())]
    told += [f"{key} is in the record, and not in the code" for key in record.killers.keys() - there]
    told += [f"{key} is listed as equivalent, and not in the code" for key in same.keys() - there]
    return sorted(
        [*told, *(f"{key} is noticed, and listed as equivalent" for key in same.keys() & record.killers.keys())]
    )
