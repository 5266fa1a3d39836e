"""Job sets: the job files of a folder, checked as a whole, submitted in order, and followed to their end."""

from __future__ import annotations

import hashlib
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.cli.command import Session
from penstock.cli.errors import CliError, Interrupted, Refused
from penstock.cli.joined import TAG
from penstock.cli.output import Column
from penstock.cli.submit import counted, read, show_plan
from penstock.domain.jobfile import JobFile, Problem, Problems, parse
from penstock.domain.jobfile.sets import Member, arrange

SUBMITTED = (Column("ID", "id"), Column("NAME", "name"))


@dataclass(frozen=True)
class JobSet:
    """The jobs of a folder, and the name of this run of them."""

    folder: str
    id: str
    members: Sequence[Member]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def hint(self) -> str:
        """What can be done with what was submitted."""
        return f"`penstock job list -T {TAG}={self.id}` shows them, `penstock job cancel --set {self.id}` ends them"


def load(folder: str, id: str | None, changed: Sequence[str] | None = None) -> JobSet:
    """The job files of a folder, or one file; of those that were `changed`, only what these concern.

    Raises Refused, before anything is submitted, with every problem.
    """
    paths = sorted(Path(folder).glob("*.sh")) if Path(folder).is_dir() else [Path(folder)]
    if not paths:
        raise Refused(f"there is no job file in {folder}", "job files of a set are those that end in .sh")
    parsed = [parse(read(str(path)), str(path)) for path in paths]
    files = [file for file in parsed if isinstance(file, JobFile)]
    wrong = [problem for file in parsed if isinstance(file, Problems) for problem in file.items]
    found = arrange(files) if not wrong else Problems(tuple(wrong))
    if isinstance(found, Problems):
        raise _refused(folder, found.items)
    if not found:
        raise Refused(f"every job of {folder} is disabled", "`enable = true`, or no `enable`, in one of them")
    name = id or uuid.uuid4().hex[:12]
    if changed is None:
        return JobSet(folder, name, found)
    from penstock.domain.jobfile.changes import choose

    chosen = choose(found, changed)
    return JobSet(folder, name, chosen.members, chosen.left_out)


def _refused(folder: str, problems: Sequence[Problem]) -> Refused:
    what = f"the jobs of {folder} cannot be submitted: {counted(len(problems), 'problem')}"
    return Refused(what, "nothing was submitted", [str(problem) for problem in problems])


def submit(session: Session, jobs: JobSet, options: Mapping[str, Any], *, verbose: bool = False) -> dict[str, str]:
    """Submit all jobs, those first that others wait for; their ids by name. Doing it again submits what is missing.

    On a terminal a line counts them; with `verbose`, each is a line that stays. Raises Refused, Broken, Unreachable or
    Interrupted, saying how far it came.
    """
    ids: dict[str, str] = {}
    try:
        for member in _counted(session, jobs.members):
            ids[member.name] = session.api.submit(body_of(member, jobs, options, ids), _key(jobs, member))
            if verbose:
                session.out.note(f"{member.name}: submitted ({ids[member.name]})")
    except KeyboardInterrupt:
        raise Interrupted(f"stopped; {_so_far(jobs, ids)}", jobs.hint) from None
    except CliError as error:
        error.what, error.hint = f"{error.what}; {_so_far(jobs, ids)}", jobs.hint if ids else error.hint
        raise
    return ids


def _counted(session: Session, members: Sequence[Member]) -> Iterator[Member]:
    """The jobs, counted on a terminal while they are submitted."""
    if not session.out.errors.is_terminal:
        yield from members
        return
    with session.out.errors.status("submitting") as line:
        for number, member in enumerate(members, 1):
            line.update(f"submitting {number} of {len(members)}")
            yield member


def _so_far(jobs: JobSet, ids: Mapping[str, str]) -> str:
    again = f"`penstock job run {jobs.folder} --set {jobs.id}` submits the rest"
    return f"{len(ids)} of {counted(len(jobs.members), 'job')} submitted: {again}"


def _key(jobs: JobSet, member: Member) -> str:
    return f"set-{jobs.id}-{hashlib.sha256(member.name.encode()).hexdigest()}"


def body_of(member: Member, jobs: JobSet, options: Mapping[str, Any], ids: Mapping[str, str]) -> dict[str, object]:
    """The body of one job's submit. Options count for every job of the set."""
    given = {name: value for name, value in options.items() if value not in (None, [], {}, ())}
    tags = {**given.pop("tags", {}), TAG: jobs.id}
    body: dict[str, object] = {"script": member.file.script, "path": member.file.path, **given, "tags": tags}
    if member.values:
        body["matrix"] = dict(member.values)
    if member.without:
        body["without"] = list(member.without)
    if member.dependencies and ids:
        body["dependencies"] = {each.name: {"job": ids[each.job]} for each in member.dependencies}
    return body


def plan(session: Session, jobs: JobSet, options: Mapping[str, Any]) -> None:
    """Show what each job would acquire and wait for. Nothing is submitted."""
    plans = [(member, session.api.plan(body_of(member, jobs, options, {}))) for member in jobs.members]
    if session.json:
        session.out.json([{"name": member.name, **found} for member, found in plans])
        return
    for number, (member, found) in enumerate(plans, 1):
        session.out.line(f"{number}. {member.name} ({member.file.path})", "bold")
        show_plan(session.out, found)
        session.out.line()


def follow(
    session: Session, jobs: JobSet, ids: Mapping[str, str], *, owner: str | None = None, verbose: bool = False
) -> int:
    """Show the logs of all jobs until all have settled, then a table; return the worst exit code."""
    from penstock.cli.joined import SetList
    from penstock.cli.logview import View
    from penstock.cli.watching import stream

    return stream(session, ids, View(verbose=verbose, summary_follows=True), SetList(jobs.id, owner))


def since_revision(place: str, revision: str) -> list[str]:
    """What was changed since the work left a revision: committed, not yet committed, deleted, and not known to git yet.

    What others changed on the revision's own branch since then does not count. Raises Refused.
    """
    if not revision or revision.startswith("-"):
        raise Refused(f"`{revision}` is not a revision", "give a commit, a branch or a tag: --since main")
    folder = Path(place) if Path(place).is_dir() else Path(place).parent
    top = _git(folder, "rev-parse", "--show-toplevel").rstrip("\n")
    begin = _git(folder, "merge-base", revision, "HEAD").strip()
    changed = _git(Path(top), "diff", "--name-only", "--no-renames", "-z", begin, "--")
    unknown = _git(Path(top), "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({path for path in (changed + unknown).split("\0") if path})


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, errors="surrogateescape", check=False
        )
    except OSError as error:
        raise Refused(f"git cannot be run: {error.strerror}", "name the files: --changed PATH") from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        what = said[-1] if said else f"`git {' '.join(words)}` found nothing"
        raise Refused(f"git does not say what was changed: {what}", "fetch it, or name files: --changed PATH")
    return done.stdout
