"""Job files that are submitted together: who waits for whom, and in which order they are submitted.

A file names those that it depends on by the `name` in their files. Jobs can only depend on jobs that there are, so each
is submitted after those before it, by their ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import PurePosixPath

from penstock.domain.jobfile import Dependency, JobFile, Problem, Problems
from penstock.domain.jobfile.checks import did_you_mean

NOT_HERE = "every `.sh` file of the folder is a job of the set"


@dataclass(frozen=True)
class Member:
    """One job of a set. `job` of each of its dependencies is the name of another member."""

    name: str
    file: JobFile
    dependencies: tuple[Dependency, ...] = ()


def arrange(files: Sequence[JobFile]) -> tuple[Member, ...] | Problems:
    """The jobs of some files, each after those that it depends on; or all that is wrong with them together."""
    enabled = [Member(name_of(file), file, file.dependencies) for file in files if file.enable]
    members = {member.name: member for member in enabled}
    disabled = {name_of(file) for file in files if not file.enable} - members.keys()
    problems = [*_twice(enabled), *_unknown(enabled, members, disabled)]
    if problems:
        return Problems(tuple(problems))
    return _ordered(members)


def name_of(file: JobFile) -> str:
    """What a file's job is called: a plain script, by its file."""
    return file.name or PurePosixPath(file.path).stem or "job"


def _twice(members: Sequence[Member]) -> Iterator[Problem]:
    first: dict[str, Member] = {}
    for member in members:
        other = first.setdefault(member.name, member)
        if other is not member:
            line, column = member.file.name_spot or (1, 1)
            why = f"the job of {other.file.path} is called `{member.name}` too"
            yield Problem(member.file.path, line, column, why, "give each job a name of its own")


def _unknown(members: Sequence[Member], known: Mapping[str, Member], disabled: set[str]) -> Iterator[Problem]:
    for member in members:
        for each in member.dependencies:
            if each.job in known:
                continue
            why = f"there is no job `{each.job}` in this folder"
            hint = f"{did_you_mean(each.job, known)}; {NOT_HERE}"
            if each.job in disabled:
                why, hint = f"the job `{each.job}` is disabled", "enable it, or do not depend on it"
            yield Problem(member.file.path, *_spot(each), why, hint)


def _spot(dependency: Dependency) -> tuple[int, int]:
    return dependency.spot or (1, 1)


def _ordered(members: Mapping[str, Member]) -> tuple[Member, ...] | Problems:
    after = {name: [each.job for each in member.dependencies] for name, member in members.items()}
    try:
        return tuple(members[name] for name in TopologicalSorter(after).static_order())
    except CycleError as error:
        circle: list[str] = error.args[1][::-1]  # from each to the one that it waits for
        return Problems(tuple(_around([members[name] for name in circle])))


def _around(circle: Sequence[Member]) -> Iterator[Problem]:
    """A problem at each place where a job of a circle names the next."""
    told = " -> ".join(member.name for member in circle)
    for member, following in pairwise(circle):
        each = next(each for each in member.dependencies if each.job == following.name)
        why = f"these jobs wait for each other: {told}"
        yield Problem(member.file.path, *_spot(each), why, "none of them could ever begin: take one of these out")
