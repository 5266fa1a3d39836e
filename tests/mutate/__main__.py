"""`python -m tests.mutate`: show that every named condition and effect is asked for by a test.

Only what is new or changed is mutated; with --all everything, the test that noticed it last coming first. With
--sample N it is N of the mutants, each against the recorded test alone, and nothing is written.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from tests.mutate import hunt, memory, owe, plant
from tests.mutate.carried import carry
from tests.mutate.hunt import Hunter
from tests.mutate.kinds import KINDS, Kind
from tests.mutate.record import Entry, Record, defined, digest, equivalents, gaps, mutated
from tests.mutate.scope import source
from tests.mutate.sites import Mutant


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every mutant is noticed, or is known to be equivalent."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("--of", choices=KINDS, action="append", help="only mutants of these")
    parser.add_argument("--all", action="store_true", help="every mutant, also where nothing has changed")
    parser.add_argument("--open", action="store_true", help="also those that no test noticed the last time")
    parser.add_argument("--sample", type=int, metavar="N", help="N recorded mutants against their recorded tests")
    parser.add_argument("--carry", metavar="REVISION", help="take over what was known then, where only names changed")
    parser.add_argument("--owe", action="store_true", help="try nothing: list what is not known as owed a test")
    parser.add_argument("--only", default="", metavar="TEXT", help="only modules whose name matches this expression")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="ask only the tests that are there")
    parser.add_argument("--processes", type=int, default=2, metavar="N")
    parser.add_argument("--budget", type=float, default=hunt.BUDGET, metavar="S", help="seconds of tests for a mutant")
    given = parser.parse_args(arguments)
    return max([_run(KINDS[name], given) for name in given.of or KINDS])


def _run(kind: Kind, given: argparse.Namespace) -> int:
    """What is asked for, for the mutants of one kind."""
    if given.sample is not None:
        return _sample(kind, given.sample, given.processes)
    record = Record.load(kind=kind)
    if given.carry:
        return _carry(record, given.carry)
    if given.owe:
        print(f"{owe.owe(record)} mutants of {kind.of}s are owed a test")
        return 0
    return _try(record, given)


def _carry(record: Record, revision: str) -> int:
    count, changed = carry(record, revision)
    record.save()
    for names, functions in changed.most_common():
        print(f"{names} in {functions} functions")
    print(f"{count} functions have what was known of their {record.kind.of}s")
    return 0


def _try(record: Record, given: argparse.Namespace) -> int:
    """Try what is new or changed, and show what no test notices."""
    kind, same = record.kind, equivalents(record.kind)
    mutants = [each for each in kind.every() if re.search(given.only, each.module)]
    todo = [each for each in mutants if each.key not in same and _is_wanted(given, record, each)]
    left = _hunt(record, todo, given) if todo else []
    for function, some in mutated(kind).items():  # where all mutants are equivalent there is nothing to try
        if all(mutant.key in same for mutant in some):
            record.entries[function] = Entry(digest(*function, kind))
    record.save()
    _table(record, mutants)
    for mutant in left:
        print(f"\nnot noticed: {mutant.module}:{mutant.function}: {mutant.name}\n{_diff(mutant)}")
    stale = [] if given.only or left else gaps(Record.load(kind=kind))
    print("\n".join(stale))
    return 1 if left or stale else 0


def _is_wanted(given: argparse.Namespace, record: Record, mutant: Mutant) -> bool:
    return given.all or (given.open and record.is_open(mutant)) or not record.is_known(mutant)


def _hunt(record: Record, todo: Sequence[Mutant], given: argparse.Namespace) -> list[Mutant]:
    """Look for a test that notices, for each mutant; returns those that have none."""
    left: list[Mutant] = []
    record.begin(todo, anew=given.all)

    def look(hunter: Hunter) -> None:
        first: list[Mutant] = []
        _each(
            hunter, record, todo, lambda mutant: hunter.called(record.candidates(mutant)), first, "the recorded tests"
        )
        if not first:
            return
        print(f"looking which of {len(hunter.items)} tests evaluate what", file=sys.stderr, flush=True)
        failing = hunter.profile(
            [each for kind in KINDS.values() for each in kind.every()], {} if given.all else memory.load()
        )
        memory.save(memory.load() | hunter.profiles)
        for name in failing:
            print(f"fails without any mutant, and is not asked: {name}", flush=True)
        _each(hunter, record, first, hunter.likely, left, "all that may notice")

    hunt.session(given.tests or hunt.folders(), given.processes, look, given.budget)
    return left


def _each(
    hunter: Hunter,
    record: Record,
    todo: Sequence[Mutant],
    choose: Callable[[Mutant], Sequence[str]],
    left: list[Mutant],
    what: str,
) -> None:
    count: Counter[str] = Counter()

    def done(mutant: Mutant, test: str | None) -> None:
        count["done"] += 1
        record.tried(mutant, test)
        if test is None:
            left.append(mutant)
        if count["done"] % 50 == 0 or count["done"] == len(todo):
            told = f"{what}: {count['done']} of {len(todo)} mutants, {len(left)} not noticed"
            print(told, file=sys.stderr, flush=True)
            record.save()

    for mutant in todo:
        hunter.try_(mutant, choose(mutant), partial(done, mutant))
    hunter.finish()


def _sample(kind: Kind, size: int, processes: int) -> int:
    """Some mutants, chosen by what they are, against the tests of the record."""
    record = Record.load(kind=kind)
    known = [each for each in kind.every() if record.is_noticed(each) and not record.is_endless(each)]
    chosen = sorted(known, key=lambda each: hashlib.sha256(repr(each.key).encode()).digest())[:size]
    missed: list[Mutant] = []

    def noticed(mutant: Mutant, test: str | None) -> None:
        if test is None:
            missed.append(mutant)

    def look(hunter: Hunter) -> None:
        for mutant in chosen:
            hunter.try_(mutant, hunter.called(record.candidates(mutant)), partial(noticed, mutant))
        hunter.finish()

    where = defined()
    names = {name for each in chosen for name in record.candidates(each)}
    hunt.session(sorted({path for name in names for path in where.get(name, ())}), processes, look)
    for mutant in missed:
        print(f"{record.candidates(mutant)} no longer notice {mutant.key}\n{_diff(mutant)}")
    print(f"{len(chosen) - len(missed)} of {len(chosen)} mutants of {kind.of}s are noticed by their tests")
    return 1 if missed else 0


def _table(record: Record, mutants: Sequence[Mutant]) -> None:
    same = equivalents(record.kind)
    print(f"{f'module ({record.kind.of}s)':44} mutants  noticed  equivalent  not noticed")
    for module in [*dict.fromkeys(each.module for each in mutants), ""]:
        some = [each for each in mutants if module in ("", each.module)]
        noticed = sum(record.is_noticed(each) for each in some)
        equal = sum(each.key in same for each in some)
        print(f"{module or 'all':44} {len(some):7} {noticed:8} {equal:11} {len(some) - noticed - equal:12}")


def _diff(mutant: Mutant) -> str:
    was = ast.unparse(ast.parse(source(mutant.module))).splitlines()
    now = ast.unparse(plant.tree_of(mutant)).splitlines()
    return "\n".join(list(difflib.unified_diff(was, now, lineterm="", n=2))[2:])


if __name__ == "__main__":
    sys.exit(main())
