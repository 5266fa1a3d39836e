"""What is to be run of a commit: policy from the default branch, job files from the commit, and leave for outsiders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from penstock import transaction
from penstock.domain.github import checks, commits, policy
from penstock.domain.github.checks import CONTROL, CONTROL_NAME, MOST, Annotation, CheckRun, annotation, check_key
from penstock.domain.github.commits import CheckSet, Stage, set_key
from penstock.domain.github.policy import JOBS, Policy
from penstock.domain.jobfile import JobFile, Problem, Problems, parse, sets
from penstock.domain.jobfile.sets import Member
from penstock.kernel import limits
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System
from penstock.usecases.github import binding, calls, reading, running
from penstock.usecases.github.calls import Repository
from penstock.usecases.github.reading import People, Unread

FILES = 32
"""How many job files a commit may have. Source: buildomat."""

OURS = ".sh"


@dataclass(frozen=True)
class Wrong:
    """Why nothing of a commit can be run, and where that stands."""

    told: str
    annotations: Sequence[Annotation] = ()


def advance(on: System, repository_id: int, sha: str) -> None:
    """Take the next step of a commit's set. Done twice, it is done once."""
    found = on.store.get(set_key(repository_id, sha), CheckSet)
    if found is None or found.due is None:
        return
    of = Repository(found.installation, found.repository_id, found.repository)
    rules = _policy(on, of)
    if isinstance(rules, Policy) and commits.is_obsolete(found, rules):
        running.supersede(on, found)
    elif found.stage is Stage.PLANNED:
        _plan(on, of, found, rules)
    else:
        _move(on, found, commits.moved(found, found.stage, found.why))


def _policy(on: System, of: Repository) -> Policy | Wrong:
    """What the default branch says; never what the commit does. [SEC-2]"""
    raw = calls.file(on, of, policy.PATH)
    if raw is None:
        return Policy()
    found = policy.parse(raw.decode("utf-8", "replace"))
    if isinstance(found, Policy):
        return found
    return Wrong(f"{policy.PATH} of the default branch cannot be read", [annotation(each) for each in found])


def _plan(on: System, of: Repository, found: CheckSet, rules: Policy | Wrong) -> None:
    if isinstance(rules, Wrong):
        _stop(on, found, rules)
    elif not rules.enable:
        _move(on, found, commits.moved(found, Stage.SETTLED, "not enabled in the default branch"))
    elif not (trusted := _trusted(on, of, found, rules)) and not found.approved_by:
        _await(on, found, _strangers(found))
    else:
        members = _members(on, of, found)
        if isinstance(members, Wrong):
            _stop(on, found, members)
        elif not members:
            _move(on, found, commits.moved(found, Stage.SETTLED, f"there is no job in {JOBS}"))
        else:
            _submit(on, of, found, members, trusted)


def _submit(on: System, of: Repository, found: CheckSet, members: Sequence[Member], trusted: Sequence[People]) -> None:
    """The jobs are submitted, if they may read what they want to."""
    others = reading.others(on, of, found, members, trusted)
    if isinstance(others, Unread):
        if others.awaits:
            _await(on, found, others.told)
        else:
            _stop(on, found, Wrong(others.told))
    else:
        _control(on, found)
        running.submit(on, found, members, others, outsider=not trusted)


def _trusted(on: System, of: Repository, found: CheckSet, rules: Policy) -> list[People]:
    """Those who brought a commit and may have it run: all of those who did so at one time. [SEC-2]"""

    def lets(login: str) -> bool:
        return rules.lets(login) or calls.is_member(on, of, login) or calls.may_write(on, of, login)

    return [people for people in found.people if all(lets(login) for login in people)]


def _strangers(found: CheckSet) -> str:
    who = ", ".join(sorted({login for people in found.people for login in people}))
    return (
        f"{who} may not have jobs run here without asking. Somebody with the right to write looks at the commit "
        f"{found.sha} and approves it: that one, and no other."
    )


def _await(on: System, found: CheckSet, told: str) -> None:
    """The commit is shown with a button, and nothing of it is run before that is pressed."""
    _halt(on, found, commits.moved(found, Stage.AWAITING, told, outsider=True), Wrong(told))


def _stop(on: System, found: CheckSet, wrong: Wrong) -> None:
    _halt(on, found, commits.moved(found, Stage.SETTLED, wrong.told), wrong)


def _halt(on: System, found: CheckSet, to: CheckSet, wrong: Wrong) -> None:
    """Write where a set got to, and what its check says of it, in one commit: a check may be shown as soon as it is
    there, and has its button only while its set awaits that. Who was faster has left the set due."""

    def decide() -> tuple[Sequence[Change], CheckRun | None]:
        if on.store.get(found.key, CheckSet) != found:
            return [], None
        changes, told = _controlled(on, found, wrong)
        return [*changes, Replace(found, to)], told

    told = transaction.run(on, decide)
    if told:
        on.forge.tell({"check": told.id})


def _control(on: System, found: CheckSet) -> None:
    """The check of the whole commit, if there is one, is well again: there is nothing to say."""
    told = transaction.run(on, partial(_controlled, on, found, None))
    if told:
        on.forge.tell({"check": told.id})


def _controlled(on: System, found: CheckSet, wrong: Wrong | None) -> tuple[Sequence[Change], CheckRun | None]:
    was = on.store.get(check_key(found.repository_id, found.sha, CONTROL), CheckRun)
    if was is None and wrong is None:
        return [], None
    check = was or checks.begin(found, CONTROL, CONTROL_NAME, (), on.world.now())
    told, notes = (wrong.told, wrong.annotations) if wrong else ("", ())
    now = checks.refused(check, told, on.world.now(), notes)
    return [Replace(was, now) if was else Create(now)], now


def _move(on: System, found: CheckSet, to: CheckSet) -> None:
    """Write where a set got to; who was faster, as a new commit or an approval, has left it due."""
    on.store.commit([Replace(found, to)])


def _members(on: System, of: Repository, found: CheckSet) -> tuple[Member, ...] | Wrong:
    """The jobs of a commit in the order of their submits, or all that is wrong with its files."""
    names = [(name, kind) for name, kind in calls.folder(on, of, JOBS, found.sha)]
    strange = [name for name, kind in names if kind != "dir" and not (kind == "file" and name.endswith(OURS))]
    if strange:
        notes = [
            Annotation(f"{JOBS}/{name}", 1, 1, f"only job files, which end in {OURS}, may be here") for name in strange
        ]
        return Wrong(f"there is something else in {JOBS}", notes)
    files = [name for name, kind in names if kind == "file"]
    if len(files) > FILES:
        return Wrong(f"there are {len(files)} job files in {JOBS}; there may be {FILES}")
    owner = binding.owner(on, found.owner, found.repository_id)
    if isinstance(owner, str):
        return Wrong(owner)
    return _arranged([_file(on, of, found, f"{JOBS}/{name}") for name in files])


def _file(on: System, of: Repository, found: CheckSet, path: str) -> JobFile | Problems:
    raw = calls.file(on, of, path, found.sha)
    if raw is None or len(raw) > limits.SCRIPT_BYTES:
        return Problems((Problem(path, 1, 1, f"the file cannot be had, or has more than {limits.SCRIPT_BYTES} bytes"),))
    return parse(raw, path)


def _arranged(files: Sequence[JobFile | Problems]) -> tuple[Member, ...] | Wrong:
    wrong = [problem for file in files if isinstance(file, Problems) for problem in file.items]
    good = [file for file in files if isinstance(file, JobFile)]
    members = Problems(tuple(wrong)) if wrong else sets.arrange(good)
    if isinstance(members, Problems):
        return Wrong("the job files of this commit cannot be run", [annotation(each) for each in members.items[:50]])
    return members if len(members) <= MOST else Wrong(f"these are {len(members)} jobs; a commit may have {MOST}")
