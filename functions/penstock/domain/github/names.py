"""Logins and refs of GitHub: how they, and patterns of refs, are written; and which refs a pattern matches."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from penstock.toml.checks import matching

LOGIN = r"[A-Za-z0-9_-]{1,100}(\[bot\])?"

check_login = matching(LOGIN, "a login", 'as in "ada", or "dependabot[bot]"')
check_ref = matching(
    r"refs/(heads|pull)/[A-Za-z0-9._/+@#*-]{1,200}", "a ref", 'as in "refs/heads/main", or "refs/pull/*"'
)


def is_among(ref: str, patterns: Iterable[str]) -> bool:
    """Whether a ref matches one of some patterns; `*` stands for any characters, slashes too."""
    return any(fnmatchcase(ref, pattern) for pattern in patterns)
