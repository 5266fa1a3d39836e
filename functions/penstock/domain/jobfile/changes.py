"""Which jobs of a set a change concerns: those whose `paths` match one of the changed files, and those without any.

This is for whoever submits sets. No function of the service imports it, nor the library that matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pathspec import PathSpec

from penstock.domain.jobfile import Dependency
from penstock.domain.jobfile.sets import Member
from penstock.domain.jobs.dependencies import On
from penstock.kernel.frozen import dataclass


@dataclass(frozen=True)
class Chosen:
    """The jobs of a set that are to run, in the order of the set; and why each of the others is left out."""

    members: tuple[Member, ...]
    left_out: Mapping[str, str]


def choose(members: Sequence[Member], changed: Iterable[str]) -> Chosen:
    """What of a set is to run when these files were changed. Paths are from the top of the repository, with slashes.

    Nobody runs without what it needs, and nobody waits for what is not there: who needs files of one that is left out,
    or its failure, is left out too; who only waits for its end goes without. `members` are as `arrange` orders them.
    """
    files = list(changed)
    left_out: dict[str, str] = {}
    kept: list[Member] = []
    for member in members:
        lacking = [each for each in member.dependencies if each.job in left_out]
        needed = next((each.job for each in lacking if _needs(each)), None)
        if not concerns(member.file.paths, files):
            left_out[member.name] = "no changed file matches its paths"
        elif needed is not None:
            left_out[member.name] = f"it needs {needed}, which is left out"
        else:
            kept.append(_without(member, lacking))
    return Chosen(tuple(kept), left_out)


def concerns(paths: Sequence[str], changed: Iterable[str]) -> bool:
    """Whether a job with these patterns is concerned; one without any always is. The last that matches a file decides.

    Patterns are those of a .gitignore. If the first is one that leaves out, it leaves out of all files.
    """
    if not paths:
        return True
    first = ["**"] if paths[0].startswith("!") else []
    spec = PathSpec.from_lines("gitignore", [*first, *paths])
    return any(spec.match_file(file) for file in changed)


def _needs(each: Dependency) -> bool:
    return each.copy_outputs or each.on is On.FAILURE


def _without(member: Member, lacking: Sequence[Dependency]) -> Member:
    """A member without the dependencies that it lacks. A file's dependency is gone when no job is left of it."""
    there = tuple(each for each in member.dependencies if each not in lacking)
    named = {each.name.partition("/")[0] for each in there}
    gone = dict.fromkeys(each.name.partition("/")[0] for each in lacking)
    return replace(member, dependencies=there, without=tuple(name for name in gone if name not in named))
