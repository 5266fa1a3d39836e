"""What a delivery leads to: a commit is heard of, or somebody pressed a button."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from penstock import transaction
from penstock.domain.github import commits
from penstock.domain.github.checks import CONTROL, CheckRun
from penstock.domain.github.commits import CheckSet, Stage, Tip, set_key, tip_key
from penstock.domain.github.deliveries import Event
from penstock.kernel.rows import Change, Create, Replace
from penstock.system import System
from penstock.usecases import published
from penstock.usecases.github import binding, calls, running
from penstock.usecases.github.calls import Repository


def happen(on: System, event: Event) -> str:
    """Do what follows from an event; in a few words what that was. Done twice, it is done once."""
    app = calls.app(on)
    if not app.serves(event.repository):
        return "ignored: the site does not serve this repository"
    of = Repository(event.installation, event.repository_id, event.repository)
    if event.line:
        return _heard(on, of, event)
    if event.app != app.app:
        return "ignored: another App's"
    return _pressed(on, of, event)


def _heard(on: System, of: Repository, event: Event) -> str:
    """A line ends with a commit; or did, when this was sent: then another is asked which it is now."""
    owner = event.repository.replace("/", ":")
    if event.is_private and binding.is_of(on, owner, of.id):
        published.keep_private(on, owner)
    tip = on.store.get(tip_key(of.id, event.line), Tip)
    is_tip = tip is None or tip.sha == event.sha or calls.end_of(on, of, event.line) == event.sha
    transaction.run(on, lambda: _note(on, event, is_tip=is_tip))
    on.forge.tell({"set": [of.id, event.sha]})
    if is_tip and tip and tip.sha != event.sha:
        on.forge.tell({"set": [of.id, tip.sha]})
    return f"jobs of {event.sha[:12]}" if is_tip else f"jobs of {event.sha[:12]}, which is not the newest"


def _note(on: System, event: Event, *, is_tip: bool) -> tuple[Sequence[Change], None]:
    """The commit's set, and that the one before it is not what the line ends with any more: in one commit."""
    now = on.world.now()
    was = on.store.get(set_key(event.repository_id, event.sha), CheckSet)
    found = commits.heard(was or commits.begin(event, now), event.people, now)
    found = commits.ends(found, event.line, now, is_tip=is_tip)
    changes: list[Change] = [] if found == was else [Replace(was, found) if was else Create(found)]
    if is_tip:
        tip = on.store.get(tip_key(event.repository_id, event.line), Tip)
        fresh = Tip(repository_id=event.repository_id, line=event.line, sha=event.sha, since=now)
        if tip is None:
            changes.append(Create(fresh))
        elif tip.sha != event.sha:
            changes.append(Replace(tip, replace(fresh, version=tip.version)))
            before = on.store.get(set_key(event.repository_id, tip.sha), CheckSet)
            changes += [Replace(before, commits.leave(before, event.line, now))] if before else []
    return changes, None


def _pressed(on: System, of: Repository, event: Event) -> str:
    """Somebody wants something of a commit's jobs. Only who may write there is heard. [SEC-2]"""
    if not calls.may_write(on, of, event.sender):
        return f"ignored: {event.sender} may not write to {of.name}"
    found = on.store.get(set_key(of.id, event.sha), CheckSet)
    if found is None:
        return "ignored: nothing is known of this commit"
    if event.name == "check_suite":
        return running.run_again(on, found)
    check = _named(on, of, event)
    if check is None:
        return "ignored: this check is not, or no longer, ours"
    if event.asked == "approve":
        return _approve(on, check, event.sender)
    if event.asked == "cancel":
        return running.cancel(on, check, event.sender)
    return running.run_again(on, found, check) if event.asked == "rerun" else "ignored: an unknown button"


def _named(on: System, of: Repository, event: Event) -> CheckRun | None:
    """The check whose button it was: of this repository, this commit, and its present run. [SEC-2]"""
    rows = on.store.find(set_key(of.id, event.sha).pk, "check#", CheckRun)
    return next((row for row in rows if row.external_id == event.check), None)


def _approve(on: System, check: CheckRun, by: str) -> str:
    """Somebody lets the jobs of one commit run, and of no other."""
    if check.number != CONTROL:
        return "ignored: there is nothing to approve"

    def decide() -> tuple[Sequence[Change], bool]:
        was = on.store.get(set_key(check.repository_id, check.sha), CheckSet)
        now = commits.approve(was, by, on.world.now()) if was else was
        return ([Replace(was, now)] if was and now and now != was else []), bool(was and was.stage is Stage.AWAITING)

    if not transaction.run(on, decide):
        return "ignored: nothing awaits approval"
    on.forge.tell({"set": [check.repository_id, check.sha]})
    return f"approved by {by}"
