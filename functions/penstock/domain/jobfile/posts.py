"""What a job file has run after the job's script: `[[post]]`."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kernel import limits
from penstock.toml.checks import NOT_TEXT, Place, clip, listed, matching, record, wanted

__all__ = ["ON", "Post", "check_posts"]

ON = ("success", "failure", "always")
NAME = "[A-Za-z0-9._-]{1,48}"
EXAMPLE = '[[post]] with name = "collect", on = "failure", script = "tar -cf /work/cores.tar /cores"'


@dataclass(frozen=True)
class Post:
    """A script that runs after the job's own: when that succeeded, when it failed, or always."""

    name: str
    on: str
    script: str


def _on(value: object, place: Place) -> str:
    if not isinstance(value, str):
        wanted("a string", value, place, 'like "always"')
        return ""
    if value not in ON:
        place.fault(f"{place.label} cannot be `{clip(value)}`", f"there are: {', '.join(ON)}")
    return value


def _script(value: object, place: Place) -> str:
    if not isinstance(value, str):
        wanted("a script", value, place, 'in quotes: "tar -cf /work/cores.tar /cores"')
        return ""
    if not value.strip():
        place.fault(f"{place.label} is empty")
    elif bad := NOT_TEXT.search(value):
        place.fault(f"{place.label} holds the character U+{ord(bad[0]):04X}, which is no text")
    return value


_name = matching(NAME, "a name", "1 to 48 of A-Z a-z 0-9 . _ -: it stands in the log")
_table = record({"name": _name, "on": _on, "script": _script}, {}, EXAMPLE)
_tables = listed(_table, limits.POSTS, "[[post]] tables")


def check_posts(value: object, place: Place) -> tuple[Post, ...]:
    """The scripts in their order. No name twice: the log knows them by it."""
    found = [Post(**{"name": "", "on": "", "script": "", **table}) for table in _tables(value, place)]
    seen: set[str] = set()
    for at, post in enumerate(found):
        if post.name and post.name in seen:
            (place / at / "name").fault(f"there is a post `{clip(post.name)}` already", "give each its own name")
        seen.add(post.name)
    return tuple(found)
