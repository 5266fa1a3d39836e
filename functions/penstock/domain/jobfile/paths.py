"""`paths`: which changed files concern a job. Patterns are those of a .gitignore; here only their shape is checked."""

import re

from penstock.kernel import limits
from penstock.toml.checks import Place, clip, listed, text

__all__ = ["check_paths"]

SETS = re.compile(r"\[[!^]?([^\[\]!^/-]|[^\[\]!^/-]-[^\[\]!^/-])+\]")
HINT = "like src/**, or !docs/** to leave some out"


def _pattern(value: object, place: Place) -> str:
    before = len(place.faults)
    found = text(value, place, limits.PATH_CHARS)
    wrong = None if len(place.faults) > before else _wrong(found.removeprefix("!"))
    if wrong:
        place.fault(f"{place.label}: `{clip(found)}` {wrong}", HINT)
    return found


def _wrong(pattern: str) -> str | None:
    """What is wrong with a pattern that has no `!` before it any more."""
    steps = pattern.removeprefix("/").removesuffix("/").split("/")
    if pattern[:1] in ("", "!", "#") or pattern != pattern.strip():
        return "is not a pattern: there is one `!` at most, no `#` before it, and no space around it"
    if "" in steps or "." in steps or ".." in steps:
        return "names no file: paths are from the top of the repository, and have no empty step, `.` or `..`"
    if "\\" in pattern:
        return "holds a backslash: steps are parted by `/`, and nothing is escaped"
    if re.search(r"[\[\]]", SETS.sub("", pattern)):
        return "holds a bracket that is not closed, or a set of no characters"
    if any(first > last for each in SETS.finditer(pattern) for first, last in re.findall(r"(.)-(.)", each[0])):
        return "holds a range that ends before it begins"
    return None


check_paths = listed(_pattern, limits.PATHS, "patterns")
