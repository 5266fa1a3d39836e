"""What a repository allows: `.github/buildomat/config.toml` on its default branch, and nowhere else.

The policy in the commit under test is ignored, so that a pull request cannot grant itself access. [SEC-2]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from penstock.domain.github.names import check_login, check_ref, is_among
from penstock.kernel.errors import Fault
from penstock.kernel.frozen import dataclass
from penstock.toml import document as toml_document
from penstock.toml.checks import Place, clip, entries, flag, listed, record, wanted

PATH = ".github/buildomat/config.toml"
JOBS = ".github/buildomat/jobs"

MAX_LOGINS = 500
MAX_REFS = 100
NONE, PULL_REQUESTS, ALL = "none", "pull-requests", "all"
GRANTABLE = ("contents", "deployments", "issues", "packages", "pull_requests")
"""What GITHUB_TOKEN may be given. Not `checks`: with that a job could say that other jobs succeeded."""

EVERY_REF = ("refs/heads/*", "refs/pull/*")
"""All branches, and all pull requests."""

DEFAULT_PERMISSIONS: Mapping[str, str] = {"contents": "read"}


@dataclass(frozen=True)
class Policy:
    """What a repository lets happen. `permissions` are those of GITHUB_TOKEN.

    Jobs of what is not among `trusted_refs`, patterns of branches and pull requests, get what an outsider's jobs get.
    """

    enable: bool = False
    org_only: bool = True
    allow_users: tuple[str, ...] = ()
    supersede: str = PULL_REQUESTS
    permissions: Mapping[str, str] = field(default_factory=lambda: DEFAULT_PERMISSIONS)
    trusted_refs: tuple[str, ...] = EVERY_REF

    def lets(self, login: str) -> bool:
        """Whether somebody's commits need nobody's approval, whoever they are."""
        return not self.org_only or login.lower() in (each.lower() for each in self.allow_users)

    def trusts(self, line: str) -> bool:
        """Whether the jobs of a line, such as `heads/main` or `pull/12`, may have what the repository has. [SEC-2]"""
        return is_among(f"refs/{line}", self.trusted_refs)

    def supersedes(self, line: str) -> bool:
        """Whether jobs of a commit are cancelled when it is no longer the newest of a line."""
        return self.supersede == ALL or (self.supersede == PULL_REQUESTS and line.startswith("pull/"))

    def granted(self, *, outsider: bool) -> Mapping[str, str]:
        """What GITHUB_TOKEN may do. In an outsider's commit, once somebody approved it, it reads what may be read."""
        return {name: "read" for name in self.permissions} if outsider else self.permissions


def parse(text: str) -> Policy | tuple[Fault, ...]:
    """The policy that a text says, or its faults by line and column. Keys that are not known are left to others."""
    document = toml_document.read(text, PATH)
    if isinstance(document, Fault):
        return (document,)
    top = Place()
    values = _keys({key: value for key, value in document.content.items() if key in KEYS}, top)
    return tuple(document.fault(each) for each in top.faults) or Policy(**values)


def _supersede(value: object, place: Place) -> str:
    if value not in (NONE, PULL_REQUESTS, ALL):
        place.fault(f"{place.label} is none of `none`, `pull-requests` and `all`")
    return str(value)


def _permissions(value: object, place: Place) -> dict[str, str]:
    found = {}
    for name, level in entries(value, place, len(GRANTABLE), 'a table like { contents = "read" }'):
        if name not in GRANTABLE:
            hint = f"there are: {', '.join(GRANTABLE)}"
            (place / name).fault(f"a job is not given `{clip(name)}`", hint, on_key=True)
        if level not in ("read", "write"):
            wanted("`read` or `write`", level, place / name)
        found[name] = str(level)
    return found


KEYS: Mapping[str, Any] = {
    "enable": flag,
    "org_only": flag,
    "allow_users": listed(check_login, MAX_LOGINS, "logins"),
    "supersede": _supersede,
    "permissions": _permissions,
    "trusted_refs": listed(check_ref, MAX_REFS, "refs"),
}
_keys = record({}, KEYS, "enable = true")
