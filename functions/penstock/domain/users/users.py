"""Who acts: users with their names and privileges, the tokens that they show, and how many jobs they have. [SEC-2]

Of a token's secret only a hash is stored. Each token is made from another one, its parent, except those that are made
with AWS credentials. Its row names all its ancestors, so one read shows whether any of them was revoked. A token never
outlives its parent, and is good for nothing that its parent is not.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, NamedTuple
from zlib import crc32

from penstock.domain.site.site import Limits
from penstock.domain.users.sessions import Session
from penstock.kernel.errors import Refused
from penstock.kernel.frozen import dataclass
from penstock.kernel.rows import ALPHABET, Key, Place, Row

ADMIN = "admin"
"""The privilege of operators: everything."""

ACT_AS = "as"
"""The privilege to submit for every repository; `as.oxide:hubris` is the one for that repository."""

VOUCH = "identity.vouch"
"""The privilege of front ends for forges: a job's identity tokens repeat what they say of its source. Operators do not
have it unless it is granted to them: a tag in a file that they run proves nothing.
"""

PRIORITY = "priority"
"""The privilege to go before others in a queue: to submit jobs with a priority above 0."""

LISTING, FORMER = "users", "former users"
"""Where users are listed; and former names, and users who were removed: their jobs may still be there."""

MAX_REVOCATIONS = 100
"""How many revocations are remembered of one user."""

_NAME = r"[a-z0-9][a-z0-9._-]{0,63}(:[a-z0-9._-]{1,100})?"


_PRIVILEGE = r"[a-z0-9][a-z0-9._:/-]{0,191}"


_TOKEN = r"[A-Za-z0-9_-]{43,128}"


@dataclass(frozen=True)
class Revoked:
    """That a privilege was taken away: by whom, and when."""

    privilege: str
    by: str
    at: datetime


class Standing(StrEnum):
    """Why a user may not act."""

    DISABLED = "disabled"
    RENAMED = "renamed"  # the row is a former name, which is not given to anybody else
    REMOVED = "removed"  # neither is the name of a user who was removed


@dataclass(frozen=True)
class Status:
    """That a user may not act: since when, and who decided it. `to` is the user's present name, if it is another."""

    standing: Standing
    by: str
    at: datetime
    to: str = ""


@dataclass(frozen=True)
class Withdrawal:
    """How far the jobs of a disabled user have been ended: `names` are left, of the first those before `before`.

    `live` are jobs that were left running, `is_cut` says that there are more. `is_last` is the pass that looks for jobs
    that were being submitted when the user was disabled.
    """

    names: tuple[str, ...]
    ends_live: bool
    before: str = ""
    is_last: bool = False
    live: tuple[str, ...] = ()
    is_cut: bool = False


@dataclass(frozen=True, kw_only=True)
class User(Row):
    """Somebody who submits jobs, or a repository for which somebody does.

    `revoked` says of what they may not any more since when that is, and by whom. `repository_id` is what GitHub calls
    a repository whatever its name is; 0 until it is known. `former` are earlier names. `due` is when the sweep goes on
    with what follows from `status`.
    """

    kind: ClassVar[str] = "user"
    name: str
    privileges: tuple[str, ...] = ()
    revoked: tuple[Revoked, ...] = ()
    created: datetime
    repository_id: int = 0
    former: tuple[str, ...] = ()
    status: Status | None = None
    withdrawal: Withdrawal | None = None
    due: datetime | None = None

    @property
    def key(self) -> Key:
        return user_key(self.name)

    @property
    def place(self) -> Place:
        is_former = self.is_a(Standing.RENAMED) or self.is_a(Standing.REMOVED)
        return Place(FORMER if is_former else LISTING, self.name)

    @property
    def deadline(self) -> datetime | None:
        return self.due

    @property
    def names(self) -> tuple[str, ...]:
        """The user's name, and the former ones: jobs and files keep the name that their owner had."""
        return (self.name, *self.former)

    def is_a(self, standing: Standing) -> bool:
        """Whether the row is of a user with this standing."""
        return self.status is not None and self.status.standing is standing

    @property
    def is_admin(self) -> bool:
        """Whether the user is an operator."""
        return ADMIN in self.privileges

    @property
    def may_vouch(self) -> bool:
        """Whether the user's word on a job's source is believed. [SEC-2]"""
        return VOUCH in self.privileges

    def is_of(self, repository_id: int) -> bool:
        """Whether the user is a repository of GitHub's, or may become it. [SEC-2]"""
        return self.repository_id in (0, repository_id)

    def may(self, privilege: str | None) -> bool:
        """Whether the user has a privilege; nobody lacks the privilege that isn't asked for."""
        return privilege is None or self.is_admin or privilege in self.privileges

    def covers(self, scope: str, of: str) -> bool:
        """Whether the token that the user showed is not narrowed to something else. A row as such has no token."""
        del scope, of
        return True

    def may_act_for(self, owner: str) -> bool:
        """Whether the user may submit jobs of an owner's: their own, and those of repositories that they were given."""
        return owner in self.names or (is_repository(owner) and (self.may(ACT_AS) or self.may(f"{ACT_AS}.{owner}")))

    def may_see(self, owner: str) -> bool:
        """Whether the user may see, and deal with, an owner's jobs and artifacts. [SEC-2]"""
        return self.is_admin or self.may_act_for(owner)


def with_privileges(user: User, privileges: Sequence[str], by: str, now: datetime) -> User:
    """A user with these privileges. A privilege that was taken away is remembered until it is granted again."""
    taken = [Revoked(each, by, now) for each in user.privileges if each not in privileges]
    before = [each for each in user.revoked if each.privilege not in privileges]
    return replace(user, privileges=tuple(privileges), revoked=tuple([*before, *taken][-MAX_REVOCATIONS:]))


def explain_denial(user: User, privileges: Iterable[str]) -> str | None:
    """Why a user may not have something that needs privileges, as a sentence; None if they may."""
    if user.status:
        return explain_status(user)
    lacking = next((each for each in sorted(privileges) if not user.may(each)), None)
    if lacking is None:
        return None
    for each in reversed(user.revoked):
        if each.privilege in (lacking, ADMIN):
            when = f"{each.at:%Y-%m-%d %H:%M:%SZ}"
            return f"{user.name} may not have this any more: {each.by} revoked {each.privilege!r} at {when}"
    return f"{user.name} may not have this: it needs the privilege {lacking!r}"


def explain_status(user: User) -> str | None:
    """Why a user may do nothing, as a sentence; None for one who may act."""
    if user.status is None:
        return None
    return f"{user.name} was {user.status.standing} by {user.status.by} at {user.status.at:%Y-%m-%d %H:%M:%SZ}"


def user_key(name: str) -> Key:
    """Where a user's row is."""
    return Key(f"user#{name}", "user")


def digest(secret: str) -> str:
    """The stored hash of a secret. Tokens are long and random, so one round of SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_name(text: str) -> bool:
    """Whether a text can name a user, or a repository."""
    return re.fullmatch(_NAME, text) is not None


def is_person(text: str) -> bool:
    """Whether a text can name a user who is no repository."""
    return is_name(text) and not is_repository(text)


def is_repository(name: str) -> bool:
    """Whether a user's name is a repository's: that of its owner, a colon, and its own."""
    return ":" in name


def is_privilege(text: str) -> bool:
    """Whether a text can name a privilege."""
    return re.fullmatch(_PRIVILEGE, text) is not None


def is_strong(token: str) -> bool:
    """Whether a token chosen by somebody else is long and random enough in shape to be accepted."""
    return re.fullmatch(_TOKEN, token) is not None


DEFAULT_LIFE = timedelta(days=90)
"""How long a token lasts that is made without saying."""

LONGEST_LIFE = timedelta(days=10 * 366)
"""The longest life that can be given in seconds."""

ANCESTORS = 8
"""How many ancestors a token has at most: so many rows are read with the token's user."""

TOUCHED_EVERY = timedelta(hours=1)
"""How often the last use of a token is written at most."""

KEPT_FOR = timedelta(days=30)
"""How long a revoked token stays in lists."""

TOKENS = 200
"""How many tokens of one user may be good at a time."""

NAME_CHARS = 100
"""How long the name of a token may be."""


class TokenKind(StrEnum):
    """What a token is made for. Its secret says it, for those who find the secret somewhere."""

    USER = "user"
    OPERATOR = "operator"
    HOST = "host"


@dataclass(frozen=True)
class Revocation:
    """That a token was revoked: by whom, and when."""

    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Token(Row):
    """A user's token. `ancestors` are the ids of those that it comes from, its parent last.

    `used` is when it was last used, to the hour. `by` is the user who made it. A `session` is taken from a cookie.
    """

    kind: ClassVar[str] = "token"
    id: str
    digest: str
    user: str
    name: str = ""
    sort: TokenKind = TokenKind.USER
    scopes: tuple[str, ...] = ()
    created: datetime
    by: str = ""
    expires: datetime | None = None
    used: datetime | None = None
    ancestors: tuple[str, ...] = ()
    revoked: Revocation | None = None
    session: Session | None = None

    @property
    def key(self) -> Key:
        return token_key(self.id)

    @property
    def place(self) -> Place:
        return Place(token_listing(self.user), self.id)

    @property
    def expiry(self) -> datetime | None:
        return self.revoked.at + KEPT_FOR if self.revoked else self.expires

    @property
    def parent(self) -> str | None:
        """The id of the token that made it; None for the first of a deployment."""
        return self.ancestors[-1] if self.ancestors else None

    def is_shown_by(self, secret: str) -> bool:
        """Whether a secret is this token's."""
        return hmac.compare_digest(self.digest, digest(secret))

    def has_expired(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.expires is not None and self.expires <= now

    def is_good(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired. Its ancestors must be good too. [SEC-2]"""
        return self.revoked is None and not self.has_expired(now)

    def is_stale(self, now: datetime) -> bool:
        """Whether its last use is to be written."""
        return self.used is None or now - self.used >= TOUCHED_EVERY

    def comes_from(self, token: str) -> bool:
        """Whether it is that token, or was made by it, or by one that was."""
        return token == self.id or token in self.ancestors


def token_key(id: str) -> Key:
    """Where the row of a token is."""
    return Key(f"token#{id}", "token")


def token_listing(user: str) -> str:
    """The listing of a user's tokens."""
    return f"tokens#{user}"


def is_any_gone(ancestors: Iterable[Token | None], now: datetime) -> bool:
    """Whether one of a token's ancestors is revoked, expired, or no longer there. [SEC-2]"""
    return any(each is None or not each.is_good(now) for each in ancestors)


_FORM = r"pst_(?:user|operator|host)_([0-7][0-9A-HJKMNP-TV-Z]{25})_[A-Za-z0-9_-]{20,128}([0-9A-HJKMNP-TV-Z]{7})"

_OLD_FORM = r"pst_[A-Za-z0-9_-]{43}"


def token_secret(sort: TokenKind, id: str, chance: str) -> str:
    """The secret of a new token: `pst_`, what it is for, its id, chance, and a checksum.

    Scanners for leaked secrets find it by its form, and are sure by its checksum, as with GitHub's tokens.
    """
    text = f"pst_{sort}_{id}_{chance}"
    return text + _checksum(text)


def _checksum(text: str) -> str:
    number = crc32(text.encode())
    return "".join(ALPHABET[number >> shift & 31] for shift in range(30, -1, -5))


def token_id_in(secret: str) -> str | None:
    """The id of the token that a secret is of; None if it is no whole secret."""
    found = re.fullmatch(_FORM, secret)
    return found[1] if found and _checksum(secret[: -len(found[2])]) == found[2] else None


def is_old_token(secret: str) -> bool:
    """Whether a secret has the form that tokens had before they had ids."""
    return re.fullmatch(_OLD_FORM, secret) is not None


MEANINGS: Mapping[str, str] = {
    "all": "everything that the user may do",
    "read": "see what the user may see; as an operator, also the site, workers and the audit log",
    "submit": "submit jobs, and deal with them and their files; with `submit:OWNER` only those of one owner",
    "review": "as a reviewer of an environment, approve or refuse the jobs that ask for it",
    "operate": "control pools, workers, resources and probes; with `operate:POOL` only one pool and what is in it",
    "host": "speak as one host, `host:POOL/NAME`, and nothing else",
    "site": "check and apply the site's configuration",
    "users": "manage users, privileges and tokens",
}
"""Every scope, and what a token with it may do. The text after a colon narrows it."""

ALL = "all"

SCOPES = 20
"""How many scopes a token may have."""

_POOL = r"(target|resource|quota)/[A-Za-z0-9][A-Za-z0-9._-]{0,127}"


class Scope(NamedTuple):
    """A scope, and what it is narrowed to; "" if it is not."""

    name: str
    of: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.of}" if self.of else self.name

    def covers(self, other: Scope) -> bool:
        """Whether a token with this scope may do all that one with the other may."""
        return self.name == ALL or (self.name == other.name and self.of in ("", other.of))


class Need(NamedTuple):
    """The scope that a route needs, "" for any but a host's. A route that `narrows` also takes one with a colon."""

    scope: str
    narrows: bool = False


WHOLE = Need("all")
"""What a route needs that does not say."""

ANY = Need("")
READ = Need("read")
SUBMIT = Need("submit", narrows=True)
REVIEW = Need("review")
OPERATE = Need("operate")
OPERATE_POOL = Need("operate", narrows=True)
HOST = Need("host", narrows=True)
SITE = Need("site")
USERS = Need("users")


def parse_scope(text: str) -> Scope | None:
    """The scope that a text names; None if it is none."""
    name, colon, of = text.partition(":")
    is_narrowed = {
        "submit": lambda: is_name(of),
        "operate": lambda: re.fullmatch(_POOL, of) is not None,
        "host": lambda: re.fullmatch(_POOL, of.rpartition("/")[0]) is not None and is_name(of.rpartition("/")[2]),
    }.get(name)
    if name not in MEANINGS or (name == "host" and not colon):
        return None
    return Scope(name, of) if not colon or (is_narrowed and is_narrowed()) else None


def parse_scopes(texts: Iterable[str]) -> list[Scope]:
    """The scopes of a token. One that is not known any more allows nothing."""
    return [scope for scope in map(parse_scope, texts) if scope]


def exceeding_scope(wanted: Sequence[Scope], had: Sequence[Scope]) -> Scope | None:
    """The first scope that nobody may give who has these; None if there is none. [SEC-2]"""
    return next((each for each in wanted if not any(one.covers(each) for one in had)), None)


def token_kind(wanted: Sequence[Scope], user: User) -> TokenKind:
    """What a token with some scopes is made for."""
    if wanted and all(scope.name == "host" for scope in wanted):
        return TokenKind.HOST
    is_wide = any(scope.name in (ALL, "operate", "site", "users") for scope in wanted)
    return TokenKind.OPERATOR if is_wide and user.is_admin else TokenKind.USER


def narrowing(need: Need, had: Sequence[Scope]) -> frozenset[str] | None:
    """To what a token is narrowed on a route: `{""}` for nothing; None if it lacks the scope. [SEC-2]"""
    if not need.scope:
        return frozenset([""]) if any(scope.name != "host" for scope in had) else None
    found = {scope.of for scope in had if scope.name in (need.scope, ALL)}
    if "" in found:
        return frozenset([""])
    return frozenset(found) if found and need.narrows else None


@dataclass(frozen=True, kw_only=True)
class Bearer(User):
    """A user who shows a token, and what the token is good for on this route. [SEC-2]

    `within` is what the scope is narrowed to, `{""}` for nothing.
    """

    token: Token
    need: Need
    within: frozenset[str]

    @property
    def is_narrowed(self) -> bool:
        """Whether the token is for less than the route's whole scope."""
        return "" not in self.within

    def covers(self, scope: str, of: str) -> bool:
        return self.need.scope != scope or not self.is_narrowed or of in self.within

    def may_act_for(self, owner: str) -> bool:
        """Whether the user may submit jobs of an owner's, with this token."""
        return User.may_act_for(self, owner) and self.covers("submit", owner)

    def may_see(self, owner: str) -> bool:
        """Whether the user may deal with an owner's jobs and artifacts. Those of others are for tokens that operate."""
        is_own = self.need == SUBMIT and narrowing(OPERATE, parse_scopes(self.token.scopes)) is None
        return self.may_act_for(owner) if is_own else User.may_see(self, owner) and self.covers("submit", owner)


def bearer(user: User, token: Token, need: Need) -> Bearer | None:
    """A user with a token, on a route; None if the token lacks the scope."""
    within = narrowing(need, parse_scopes(token.scopes))
    return None if within is None else Bearer(**vars(user), token=token, need=need, within=within)


MINUTE = 60
DAY = 24 * 3600

STEPS = 50
"""Into how many steps the lower limit of an owner's jobs is divided, at least."""


@dataclass(frozen=True, kw_only=True)
class Tally(Row):
    """How many jobs of an owner have not settled; how many it submitted lately, and with how many bytes of scripts, as
    that was `at` a time; how many bytes its inputs and outputs take; and how many of its jobs are under way, which is
    exact.

    Of those submitted lately as many are forgotten in a minute as may be submitted, of the bytes of scripts in a day:
    buckets that leak. To count every job would cost two writes each. So one of many is counted, for all of them: which,
    its id says, and its row says for how many. What a job adds, its end takes away. So the count is right on average,
    and off by a tenth at the limit as a rule; where the limits are low, it is exact. Of small files and scripts
    likewise, some are counted for all of them.
    """

    kind: ClassVar[str] = "tally"
    owner: str
    jobs: int = 0
    submits: float = 0.0
    scripts: float = 0.0
    stored: int = 0
    begun: int = 0
    at: datetime

    @property
    def key(self) -> Key:
        return tally_key(self.owner)


def tally_key(owner: str) -> Key:
    """The key of an owner's tally."""
    return Key(f"tally#{owner}", "tally")


def weight_of(job: str, limits: Limits) -> int:
    """For how many a new job is counted; 0 if it is one of those that another is counted for."""
    weight = max(1, min(limits.jobs, limits.submits) // STEPS)
    return weight if crc32(job.encode()) % weight == 0 else 0


def check_tally(tally: Tally, limits: Limits, now: datetime) -> None:
    """Raises Refused 429 if the owner may not have one more job, or may not submit it now."""
    if tally.jobs >= limits.jobs:
        why = f"{tally.owner} has about {tally.jobs} jobs that have not settled; the limit is {limits.jobs}"
        raise Refused(429, "too-many-jobs", f"{why} (limits.jobs): wait for some of them, or cancel them")
    lately = _leaked(tally, limits, now)
    if lately.submits + 1 > limits.submits:
        why = f"{tally.owner} has submitted too many jobs in the last minute; the limit is {limits.submits}"
        raise Refused(429, "too-many-submits", f"{why} (limits.submits): wait a minute")
    if lately.scripts >= limits.script_bytes:
        why = f"the scripts of {tally.owner} of the last day take too much; the limit is {limits.script_bytes} bytes"
        raise Refused(429, "too-many-bytes", f"{why} (limits.script_bytes): wait an hour")
    if tally.stored >= limits.stored_bytes:
        raise Refused(429, "too-many-bytes", _too_many_bytes(tally, limits))


def _leaked(tally: Tally, limits: Limits, now: datetime) -> Tally:
    """A tally as it is now: what was submitted before is forgotten little by little."""
    seconds = max(0.0, (now - tally.at).total_seconds())
    submits = max(0.0, tally.submits - seconds * limits.submits / MINUTE)
    scripts = max(0.0, tally.scripts - seconds * limits.script_bytes / DAY)
    return replace(tally, submits=submits, scripts=scripts, at=now)


def with_job(tally: Tally, weight: int, script: int, limits: Limits, now: datetime) -> Tally:
    """A tally with one more job, which is counted for so many, and so many bytes of scripts."""
    lately = _leaked(tally, limits, now)
    return replace(lately, jobs=tally.jobs + weight, submits=lately.submits + weight, scripts=lately.scripts + script)


def without_job(tally: Tally, weight: int, *, begun: bool) -> Tally:
    """A tally without a job that was counted for so many, and may have been under way."""
    return replace(tally, jobs=max(0, tally.jobs - weight), begun=max(0, tally.begun - begun))


BYTE_STEPS = 5000
"""Into how many steps the limit of an owner's bytes is divided. Where all its files are smaller than a step, what is
counted of them is off by 1.4 % at the limit: 1/sqrt(5000).
"""


def bytes_counted(id: str, size: int, most: int) -> int:
    """For how many bytes something new is counted: for its size, or for a step of the limit if its id says so.

    `most` is the limit of what is counted together.
    """
    step = max(1, most // BYTE_STEPS)
    if size >= step:
        return size
    return step if crc32(id.encode()) * step < size << 32 else 0


def check_bytes(tally: Tally, more: int, limits: Limits) -> None:
    """Raises Refused 413 if the owner's inputs and outputs may not take so many bytes more."""
    if tally.stored + more > limits.stored_bytes:
        raise Refused(413, "too-many-bytes", _too_many_bytes(tally, limits))


def _too_many_bytes(tally: Tally, limits: Limits) -> str:
    why = f"the inputs and outputs of {tally.owner} take about {tally.stored} bytes; the limit is {limits.stored_bytes}"
    return f"{why} (limits.stored_bytes): `penstock job discard JOB` deletes what a job made"


def with_bytes(tally: Tally, more: int) -> Tally:
    """A tally with so many bytes more, or fewer."""
    return replace(tally, stored=max(0, tally.stored + more))
