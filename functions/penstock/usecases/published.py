"""Published files: outputs that got a name for good, by hand or by their job's file. Found, listed, downloaded,
withdrawn. [ART-1]

What a user may not read is treated as nonexistent. A name is one row, and one entry in its artifact's owners, both
written in one commit. So whatever deletes the job's outputs meanwhile either finds one more owner, or was first and
nothing is published.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain import published
from penstock.domain.artifacts import artifacts
from penstock.domain.artifacts.artifacts import Artifact
from penstock.domain.jobs.jobs import UNTRUSTED, Job, Publication
from penstock.domain.published import (
    ALL_SERIES,
    MAX_SERIES,
    Access,
    Published,
    Series,
    collection,
    published_key,
    series_key,
)
from penstock.domain.replies import SignedOutput
from penstock.domain.users import users
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Refused, not_found
from penstock.kernel.rows import Change, Create, Delete, Replace
from penstock.system import System, transact
from penstock.usecases.artifacts import outputs, owners
from penstock.usecases.jobs.flow import spec_of
from penstock.usecases.logs import logs
from penstock.usecases.users import audit

READ = 100
"""How many names are read at once."""

SCANNED = 1000
"""How many names one page of a list reads."""

FAILURES_NAMED = 3
"""How many failures a job's reason names; all of them are in its log."""


def publish(
    on: System, user: User, job: Job, output: str, series: str, version: str, name: str
) -> tuple[Published, bool]:
    """Give an output of a job a name, and whether that is new: the same bytes may have it already.

    Raises Refused 400 or 404; 409 for a job that is not over, for a name that stands for other bytes, or bytes that are
    not there; 410 if the outputs are gone.
    """
    for part in (series, version, name):
        if not published.is_part(part):
            raise Refused(400, "bad-request", "a series, a version and a name have 1 to 100 of A-Z a-z 0-9 . _ -")
    if not job.is_settled:
        raise Refused(409, "job-not-settled", f"job {job.id} is not over; what it keeps is published after that")
    row = outputs.find(on, job, output)
    if row is None:
        raise not_found("output", output[:64])
    return _assign(on, job, row, Publication(row.path, series, version, name), user.name, again=True)


def _assign(
    on: System, job: Job, output: Artifact, wanted: Publication, by: str, *, again: bool
) -> tuple[Published, bool]:
    """Give a name, in one commit with the ownership. A name that has the same bytes stays as it is. [ART-1]

    A withdrawn name is given `again` only by a person: a repeated job does not undo a withdrawal.
    """

    def decide() -> tuple[Sequence[Change], tuple[Published, bool]]:
        made = Published(
            of=job.owner, series=wanted.series, version_name=wanted.version, name=wanted.name, by=by,
            artifact=output.id, **vars(output.content), path=output.path, job=job.id, time=on.world.now(),
        )  # fmt: skip
        known = on.store.get(made.key, Published)
        if known and not published.has_content(known, made.content):
            raise published.already_taken(known)
        if known and not known.withdrawn:
            return [], (known, False)
        if known and not again:
            raise published.withdrawn(known)
        changes: list[Change] = [Replace(known, made) if known else Create(made), _own_change(on, made)]
        return audit.record(on, changes, by, "publish", made.full, f"{made.path} of job {job.id}"), (made, True)

    return transact(on, decide)


def _own_change(on: System, made: Published) -> Change:
    """The change that makes an artifact published. Raises Refused 409 if its bytes are missing, 410 if it is gone."""
    artifact = owners.find(on, made.artifact)
    if artifact is None:
        raise Refused(410, "outputs-gone", f"the outputs of job {made.job} are gone")
    if not artifact.has_bytes:
        raise Refused(409, "no-bytes", f"the bytes of {made.path} of job {made.job} are not there")
    after = artifacts.own(artifact, made.owner)
    if len(after.owners) > limits.OWNERS:
        raise Refused(409, "too-many-owners", f"an artifact has at most {limits.OWNERS} owners")
    return Replace(artifact, after)


def publish_declared(on: System, job: Job) -> str:
    """Publish what a succeeded job's file declares; returns what failed, as the rest of a sentence.

    Done before the job settles, and again if that was interrupted. A failure of one does not stop the others.
    """
    spec = spec_of(on, job)
    kept = {row.path: row for row in owners.outputs_of(on, job.id) if row.attempt == job.attempt}
    wrong: list[str] = []
    for each in spec.publish if spec else ():
        try:
            if job.provenance.outsider:
                raise Refused(422, "outsider", UNTRUSTED)
            if each.path not in kept:
                raise Refused(404, "no-such-output", f"the job kept no {each.path}; no output rule matched such a file")
            row, is_new = _assign(on, job, kept[each.path], each, job.owner, again=False)
            if is_new:
                logs.append(on, job.id, job.attempt, f"published {each.path} as {row.full}")
        except Refused as refused:
            wrong.append(refused.detail)
            logs.append(on, job.id, job.attempt, f"NOT published: {each.path}: {refused.detail}")
    return _failure_note(wrong)


def _failure_note(wrong: Sequence[str]) -> str:
    if not wrong:
        return ""
    more = f"; and {len(wrong) - FAILURES_NAMED} more" if len(wrong) > FAILURES_NAMED else ""
    return f"; BUT NOT PUBLISHED: {'; '.join(wrong[:FAILURES_NAMED])}{more}"


def find(on: System, user: User | None, of: str, series: str, version: str, name: str) -> Published:
    """A published file that the user may read; without a user, that anybody may. Raises Refused 404. [SEC-2]"""
    row = None
    if users.is_name(of) and all(published.is_part(part) for part in (series, version, name)):
        row = on.store.get(published_key(of, series, version, name), Published)
    if row is None or not published.may_read(user, of, series, access_rules(on, of)):
        raise not_found("published file", f"{of}/{series}/{version}/{name}"[:400])
    return row


def list_published(
    on: System, user: User, of: str, series: str, version: str, limit: int, page: str
) -> tuple[list[Published], str | None]:
    """Some of what an owner published and the user may read, by name, and the next page. Raises Refused 400."""
    start = _prefix(of, series, version)
    rules, found = access_rules(on, of), list[Published]()
    after, scanned = _after(page, start), 0
    while scanned < SCANNED:
        rows = on.store.find(collection(of), start, Published, limit=READ, after=after)
        for row in rows:
            scanned, after = scanned + 1, row.key.sk
            if not row.withdrawn and published.may_read(user, of, row.series, rules):
                found.append(row)
            if len(found) == limit:
                return found, _page(row)
        if len(rows) < READ:
            return found, None
    return found, _page(rows[-1])


def _prefix(of: str, series: str, version: str) -> str:
    if not users.is_name(of):
        raise Refused(400, "bad-request", "owner is the name of a user, or of a repository")
    if version and not series:
        raise Refused(400, "bad-request", "a version is one of a series: say which")
    if not all(published.is_part(part) for part in (series, version) if part):
        raise Refused(400, "bad-request", "a series and a version have 1 to 100 of A-Z a-z 0-9 . _ -")
    return "#".join(["file", *(part for part in (series, version) if part), ""])


def _after(page: str, start: str) -> str:
    """The place that a page begins after: one of this list. Raises Refused 400 for an invalid page."""
    if not page:
        return ""
    parts = page.split("/")
    if len(parts) == 3 and all(published.is_part(part) for part in parts):
        after = published_key("", *parts).sk
        if after.startswith(start):
            return after
    raise Refused(400, "bad-request", "page must be what `next` of the page before it says")


def _page(row: Published) -> str:
    return f"{row.series}/{row.version_name}/{row.name}"


def sign(on: System, row: Published, seconds: int) -> SignedOutput:
    """A URL to download a published file for some seconds. Raises Refused 410 if it was withdrawn."""
    if row.withdrawn:
        raise published.withdrawn(row)
    artifact = owners.find(on, row.artifact)
    if artifact is None or artifact.lost:
        raise Refused(409, "no-bytes", f"the bytes of {row.full} are lost; operators are told")
    return outputs.sign_artifact(on, row.artifact, row.name, row.content, seconds)


def unpublish(on: System, user: User, of: str, series: str, version: str, name: str) -> Published:
    """Withdraw a name, by its owner or an operator; what nobody else owns goes. Safe to repeat. [ART-2]

    Raises Refused 403 for users who may only read it, 404.
    """

    def decide() -> tuple[Sequence[Change], Published]:
        row = find(on, user, of, series, version, name)
        if not user.may_see(of):
            raise Refused(403, "privilege-missing", f"only {of}, and operators, withdraw what {of} published")
        if row.withdrawn:
            return [], row
        after = published.withdraw(row, user.name, on.world.now())
        changes = [Replace(row, after), *owners.release_changes(on, owners.find(on, row.artifact), row.owner)]
        return audit.record(on, changes, user.name, "unpublish", row.full), after

    return transact(on, decide)


def access_rules(on: System, of: str) -> list[Series]:
    """The owner's rules on who may read."""
    return on.store.find(collection(of), "series#", Series, limit=MAX_SERIES)


def show_access(on: System, user: User, of: str) -> list[Series]:
    """The owner's rules on who may read, for users who may see the owner's jobs. Raises Refused 404. [SEC-2]"""
    if not users.is_name(of) or not user.may_see(of):
        raise not_found("user", of[:64])
    return access_rules(on, of)


def set_access(on: System, user: User, of: str, series: str, access: Access | None, privilege: str) -> Series | None:
    """Set who may read a series, or (EVERY) all series without a rule of their own; None removes the rule.

    Raises Refused 400; 404 for users who may not act for the owner; 409 for too many rules.
    """
    _check_access(user, of, series, access, privilege)

    def decide() -> tuple[Sequence[Change], Series | None]:
        was = on.store.get(series_key(of, series), Series)
        now = Series(of=of, name=series, access=access, privilege=privilege) if access else None
        changes: list[Change] = [Delete(was)] if was else []
        if now and was is None and len(access_rules(on, of)) >= MAX_SERIES:
            raise Refused(409, "too-many-series", f"of at most {MAX_SERIES} series something may be said")
        if now:
            changes = [Replace(was, now) if was else Create(now)]
        text = " ".join(filter(None, (access or "as the others", privilege)))
        return audit.record(on, changes, user.name, "open series", f"{of}/{series}", text), now

    return transact(on, decide)


def _check_access(user: User, of: str, series: str, access: Access | None, privilege: str) -> None:
    if not users.is_name(of) or not user.may_see(of):
        raise not_found("user", of[:64])
    if series != ALL_SERIES and not published.is_part(series):
        raise Refused(
            400, "bad-request", f"a series has 1 to 100 of A-Z a-z 0-9 . _ -; {ALL_SERIES} stands for all others"
        )
    if (access is Access.PRIVILEGE) != bool(privilege) or (privilege and not users.is_privilege(privilege)):
        raise Refused(400, "bad-request", "with the access `privilege`, and only with it, a privilege is named")


def make_private(on: System, of: str) -> None:
    """Make what a private repository publishes private, unless there is a rule already. [SEC-2]"""

    def decide() -> tuple[Sequence[Change], None]:
        said_already = on.store.get(series_key(of, ALL_SERIES), Series)
        return ([] if said_already else [Create(Series(of=of, name=ALL_SERIES, access=Access.PRIVATE))]), None

    transact(on, decide)
