"""The GitHub App that a site's jobs come through, if they do."""

from __future__ import annotations

import re

from penstock.domain.site import GitHubApp
from penstock.toml.checks import Place, clip, listed, matching, number, record, text

REPOSITORIES = 1000
API = re.compile(
    r"https://[a-z0-9.-]{1,200}(:[0-9]{1,5})?(/[a-z0-9/._-]{0,100}[a-z0-9])?|http://127\.0\.0\.1:[0-9]{1,5}"
)
"""Where GitHub's API is. What the App's key signs is shown there, so nobody on the way may read it."""

GITHUB = 'app = 12345, repositories = ["oxide/hubris"]'


def check_github(value: object, place: Place) -> GitHubApp:
    """The App, and the repositories of which it takes jobs."""
    found = _keys(value, place)
    lower = tuple(each.lower() for each in found.get("repositories", ()))
    return GitHubApp(**{"app": 1, **found, "repositories": lower})


def _api(value: object, place: Place) -> str:
    before = len(place.faults)
    found = text(value, place, most=400)
    if len(place.faults) == before and not API.fullmatch(found):
        place.fault(
            f"{place.label}: `{clip(found)}` is not the URL of an API", "like https://github.example.com/api/v3"
        )
    return found


_repository = matching(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}/(\*|[A-Za-z0-9._-]{1,100})", "a repository", "as in oxide/hubris, or oxide/*"
)
_keys = record(
    {"app": number(1, 2**53), "repositories": listed(_repository, REPOSITORIES, "repositories")},
    {"api": _api},
    f"{{ {GITHUB} }}",
)
