"""Job files that are submitted together: who waits for whom, and in which order they are submitted.

A file names those that it depends on by the `name` in their files. Jobs can only depend on jobs that there are, so each
is submitted after those before it, by their ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain, count, pairwise
from pathlib import PurePosixPath

from penstock.domain.jobfile import Dependency, JobFile, Problem, Problems, variant
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
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


@dataclass(frozen=True)
class Unfit:
    """A file of a set that cannot be run, and what its job would be called."""

    name: str
    path: str
    problems: tuple[Problem, ...]


def arrange_fit(files: Sequence[JobFile], unfit: Sequence[Unfit]) -> tuple[tuple[Member, ...], tuple[Unfit, ...]]:
    """The jobs of those files that can be run, and the others, which are `unfit` or do not fit into the set.

    Jobs may depend on a job that cannot be run: they wait for a job that there will not be. No two have one name.
    """
    good, wrong = list(files), list(unfit)
    while isinstance(found := arrange(good, {*(each.name for each in wrong), *_spoilt(files, good)}), Problems):
        spoilt = {problem.file for problem in found.items}
        for file in (file for file in good if file.path in spoilt):
            its = tuple(problem for problem in found.items if problem.file == file.path)
            wrong.append(Unfit(name_of(file), file.path, its))
        good = [file for file in good if file.path not in spoilt]
    return found, tuple(_distinct(wrong, {member.name for member in found}))


def _spoilt(files: Sequence[JobFile], good: Sequence[JobFile]) -> Iterator[str]:
    """The names of the jobs of files that are not good."""
    for file in files:
        if file not in good:
            yield from (member.name for member in members_of(file))


def _distinct(unfit: Sequence[Unfit], taken: set[str]) -> Iterator[Unfit]:
    """Files that cannot be run, each with a name of its own."""
    for each in unfit:
        names = chain((each.name, each.path), (f"{each.path} ({number})" for number in count(2)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        yield replace(each, name=name)


def arrange(files: Sequence[JobFile], lost: Collection[str] = ()) -> tuple[Member, ...] | Problems:
    """The jobs of some files, each after those that it depends on; or all that is wrong with them together.

    They may depend on jobs that are `lost`.
    """
    enabled = [member for file in files if file.enable for member in members_of(file)]
    whole: dict[str, list[Member]] = {}
    for member in enabled:
        if member.values:
            whole.setdefault(name_of(member.file), []).append(member)
    enabled = [replace(member, dependencies=tuple(_spread(member, whole))) for member in enabled]
    members = {member.name: member for member in enabled}
    disabled = {name_of(file) for file in files if not file.enable} - members.keys()
    problems = [*_twice(enabled), *_unknown(enabled, members, disabled, lost), *_too_many(enabled)]
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


def _unknown(
    members: Sequence[Member], known: Mapping[str, Member], disabled: set[str], lost: Collection[str]
) -> Iterator[Problem]:
    for member in members:
        for each in member.dependencies:
            if each.job in known or each.job in lost:
                continue
            why = f"there is no job `{each.job}` in this folder"
            hint = f"{did_you_mean(each.job, known)}; {NOT_HERE}"
            if each.job in disabled:
                why, hint = f"the job `{each.job}` is disabled", "enable it, or do not depend on it"
            yield Problem(member.file.path, *_spot(each), why, hint)


def _spot(dependency: Dependency) -> tuple[int, int]:
    return dependency.spot or (1, 1)


def _ordered(members: Mapping[str, Member]) -> tuple[Member, ...] | Problems:
    after = {
        name: [each.job for each in member.dependencies if each.job in members] for name, member in members.items()
    }
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
