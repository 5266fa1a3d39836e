"""Job files that are submitted together: who waits for whom, and in which order they are submitted.

A file names those that it depends on by the `name` in their files. Jobs can only depend on jobs that there are, so each
is submitted after those before it, by their ids.

Which jobs of a set a change concerns: those whose `paths` match one of the changed files, and those without any.

This is for whoever submits sets. No function of the service imports it, nor the library that matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import PurePosixPath

from pathspec import PathSpec

from penstock.domain.jobfile import Dependency, JobFile, Problem, Problems, variant
from penstock.domain.jobs.dependencies import On
from penstock.kernel import limits
from penstock.toml.checks import did_you_mean

NOT_HERE = "every `.sh` file of the folder is a job of the set"


@dataclass(frozen=True)
class Member:
    """One job of a set. `job` of each of its dependencies is the name of another member; it goes `without` the others.

    `values` are those of its matrix. Whoever depends on the file as a whole depends on all that it stands for.
    """

    name: str
    file: JobFile
    dependencies: tuple[Dependency, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()


def arrange(files: Sequence[JobFile]) -> tuple[Member, ...] | Problems:
    """The jobs of some files, each after those that it depends on; or all that is wrong with them together."""
    enabled = [member for file in files if file.enable for member in members_of(file)]
    whole: dict[str, list[Member]] = {}
    for member in enabled:
        if member.values:
            whole.setdefault(name_of(member.file), []).append(member)
    enabled = [replace(member, dependencies=tuple(_spread(member, whole))) for member in enabled]
    members = {member.name: member for member in enabled}
    disabled = {name_of(file) for file in files if not file.enable} - members.keys()
    problems = [*_twice(enabled), *_unknown(enabled, members, disabled), *_too_many(enabled)]
    if problems:
        return Problems(tuple(problems))
    return _ordered(members)


def members_of(file: JobFile) -> tuple[Member, ...]:
    """The jobs that a file stands for: one, or one for each combination of its matrix."""
    if file.matrix is None:
        return (Member(name_of(file), file, file.dependencies),)
    filled = ((values, variant(file, values)) for values in file.matrix.combinations)
    return tuple(Member(name_of(one), file, one.dependencies, values) for values, one in filled)


def _spread(member: Member, whole: Mapping[str, Sequence[Member]]) -> Iterator[Dependency]:
    """A member's dependencies; those on a file with a matrix are on each of its jobs, with a folder for each."""
    for each in member.dependencies:
        if each.job not in whole:
            yield each
        for other in whole.get(each.job, ()):
            folder = "-".join(other.values.values()).replace("/", "-")
            yield replace(each, name=f"{each.name}/{folder}", job=other.name)


def _too_many(members: Sequence[Member]) -> Iterator[Problem]:
    for member in members:
        if len(member.dependencies) > limits.DEPENDENCIES:
            why = f"this job would depend on {len(member.dependencies)} others; it may on at most {limits.DEPENDENCIES}"
            yield Problem(
                member.file.path, *_spot(member.dependencies[0]), why, "depend on fewer of them by their names"
            )


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
