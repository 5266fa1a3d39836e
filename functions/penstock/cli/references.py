"""What a user writes for a job, a worker, a pool: whole ids, beginnings of ids, `-` for the last job, and names.

A beginning is completed here, before the command runs, so that everything that is printed or sent has the whole id. Ids
sort by age, and so does the list of jobs: the jobs whose ids begin with something are one page of it, of six entries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.errors import Refused

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from penstock.cli.command import Session

    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic for type checkers only, in some versions

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
LENGTH = 26
BEGINNING = re.compile(rf"[0-7][{ALPHABET}]{{0,{LENGTH - 1}}}")
"""A ULID, or what one can begin with: 48 bits of time leave the first letter 8 values."""

SHOWN = 5
"""How many candidates an error names."""

OFFERED = 50
"""How many things a shell is offered."""

LAST = "-"


class Reference(ParamType):
    """The value of an argument or option that names a thing. It stays as it is."""

    name = "reference"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value as it was given: while the line is read, the service may not be known yet."""
        return value

    def resolve(self, session: Session, given: Any) -> Any:
        """The whole id or name. Raises Refused when the beginning of an id fits no thing, or several."""
        return given

    def offer(self, session: Session, ctx: click.Context, begun: str) -> list[tuple[str, str]]:
        """Values that begin with a text, each with a word about it."""
        return []

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """What a shell offers when the user presses Tab."""
        from penstock.cli import completion

        return completion.offered(ctx, lambda session: self.offer(session, ctx, incomplete))


class JobId(Reference):
    """A job: its id, the beginning of the id of one of the user's own jobs, or `-` for the newest of these."""

    name = "job"

    def resolve(self, session: Session, given: Any) -> Any:
        text = str(given).upper()
        if text == LAST:
            return self._newest(session)
        if not BEGINNING.fullmatch(text):
            return given
        return text if len(text) == LENGTH else _only("job", text, _jobs(session, text, SHOWN + 1), "job list")

    def offer(self, session: Session, ctx: click.Context, begun: str) -> list[tuple[str, str]]:
        text = begun.upper()
        if text and not BEGINNING.fullmatch(text):
            return []
        return [(job["id"], _about(job)) for job in _jobs(session, text, OFFERED)]

    @staticmethod
    def _newest(session: Session) -> str:
        found = _jobs(session, "", 1)
        if not found:
            raise Refused("`-` is your newest job, and you have none", "`penstock job run FILE` submits one")
        return str(found[0]["id"])


class Dependency(JobId):
    """NAME=JOB[,on=failure][,copy_outputs=false], where JOB is a job."""

    name = "dependency"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        name, equals, job = value.partition("=")
        if not name or not equals:
            self.fail(f"`{value}` is not NAME=VALUE", param, ctx)
        return name, job

    def resolve(self, session: Session, given: Any) -> Any:
        name, text = given
        job, comma, settings = text.partition(",")
        return name, super().resolve(session, job) + comma + settings

    def offer(self, session: Session, ctx: click.Context, begun: str) -> list[tuple[str, str]]:
        name, equals, job = begun.partition("=")
        return [(name + equals + id, about) for id, about in super().offer(session, ctx, job)] if equals else []


class ListedId(Reference):
    """A thing of a list that is short enough to be read whole: a worker, a resource, a cache entry, a review."""

    def __init__(
        self, noun: str, path: str, command: str, *, key: str = "id", letter: str = "", length: int = LENGTH
    ) -> None:
        self.name, self._path, self._command, self._key = noun, path, command, key
        self._letter, self._length = letter, len(letter) + length

    def resolve(self, session: Session, given: Any) -> Any:
        text = self._whole_form(str(given))
        if not text or len(text) >= self._length:
            return given
        found = [{**item, "id": item[self._key]} for item in session.api.items(self._path)]
        return _only(self.name, text, [item for item in found if item["id"].startswith(text)], self._command)

    def offer(self, session: Session, ctx: click.Context, begun: str) -> list[tuple[str, str]]:
        text = self._whole_form(begun) or begun
        found = [item for item in session.api.items(self._path) if item[self._key].startswith(text)]
        return [(item[self._key], _about(item)) for item in found[:OFFERED]]

    def _whole_form(self, text: str) -> str:
        """A beginning as ids are written, also without the letter that they begin with; else nothing."""
        own = text.removeprefix(self._letter).upper()
        return self._letter + own if BEGINNING.match(own) else ""


class Name(Reference):
    """A thing that has a name: a pool, a target, a resource type."""

    def __init__(self, noun: str, path: str, key: str = "name") -> None:
        self.name, self._path, self._key = noun, path, key

    def offer(self, session: Session, ctx: click.Context, begun: str) -> list[tuple[str, str]]:
        names = [str(item[self._key]) for item in session.api.items(self._path)]
        return [(name, "") for name in names if name.startswith(begun)]


class OutputPath(Reference):
    """An output of the job that stands before it on the line."""

    name = "output"

    def offer(self, session: Session, ctx: click.Context, begun: str) -> list[tuple[str, str]]:
        from penstock.cli.times import size_text

        job = JOB.resolve(session, ctx.params["job"])
        found = session.api.items("jobs", job, "outputs")
        return [(each["path"], size_text(each["size"])) for each in found if each["path"].startswith(begun)]


JOB = JobId()
DEPENDENCY = Dependency()
POOL = Name("pool", "pools", "pool")
TARGET = Name("target", "targets")
RESOURCE_TYPE = Name("resource type", "resource-types")
OUTPUT = OutputPath()
WORKER = ListedId("worker", "workers", "worker list", letter="w-")
RESOURCE = ListedId("resource", "resources", "resource list", letter="r-")
CACHE = ListedId("cache entry", "caches", "cache list", length=2 * LENGTH + 1)
REVIEW = ListedId("job to review", "reviews", "job approve", key="job")

BY_NAME: Mapping[str, Reference] = {"JOB": JOB, "POOL": POOL, "CACHE": CACHE, "OUTPUT": OUTPUT}
"""What an argument takes by its name, where all arguments of this name take the same."""


def following(begun: str) -> str:
    """The first text of a ULID's length after all ULIDs that begin with something."""
    kept = begun.rstrip(ALPHABET[-1])  # never empty, as no ULID begins with the last letter
    after = kept[:-1] + ALPHABET[ALPHABET.index(kept[-1]) + 1]
    return after.ljust(LENGTH, ALPHABET[0])


def _jobs(session: Session, begun: str, most: int) -> list[dict[str, Any]]:
    """The newest of the user's jobs whose ids begin with something."""
    page = following(begun) if begun else ""
    newest = session.api.items("jobs", query=[("page", page)] if page else [], most=most)
    return [job for job in islice(newest, most) if job["id"].startswith(begun)]


def _only(noun: str, begun: str, found: Sequence[Mapping[str, Any]], command: str) -> str:
    """The id of the only candidate. Raises Refused when there is none, and when there are several, which it names."""
    if len(found) == 1:
        return str(found[0]["id"])
    if not found:
        what = f"there is no {noun} whose id begins with {begun}, among those that `penstock {command}` lists"
        hint = "another's job needs its whole id" if noun == JOB.name else f"`penstock {command}` shows what there is"
        raise Refused(what, hint, code="id-not-found")
    lines = [f"  {item['id']}  {_about(item)}".rstrip() for item in found[:SHOWN]]
    more = ["  and more"] if len(found) > SHOWN else []
    error = Refused(
        f"more than one {noun} has an id that begins with {begun}",
        "give more of the id",
        lines + more,
        code="id-not-unique",
    )
    error.members = {"candidates": [item["id"] for item in found[:SHOWN]], "more": bool(more)}
    raise error


def _about(item: Mapping[str, Any]) -> str:
    """A few words about a thing, beside its id."""
    state = item.get("outcome") or item.get("state")
    return " ".join(str(each) for each in (state, item.get("name") or item.get("target") or item.get("type")) if each)
