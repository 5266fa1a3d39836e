"""The table of a job file's keys, and the check of a whole document against it.

The checks of the keys that say how a job runs are here too: rules, times, retries, environment, tags, and the patterns
of `paths`, which are those of a .gitignore.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from penstock.domain.jobfile.matrix import check_matrix, check_references
from penstock.domain.jobfile.sections import (
    OutputRule,
    check_access_repos,
    check_caches,
    check_dependencies,
    check_posts,
    check_publish,
    check_resources,
    check_toolchain,
    parse_output_rule,
)
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import (
    GUESSES,
    NOT_TEXT,
    Check,
    Fault,
    Place,
    clip,
    did_you_mean,
    entries,
    flag,
    listed,
    number,
    parse_duration,
    text,
    wanted,
)

ENV_NAME = re.compile(r"[A-Za-z_][0-9A-Za-z_]*")


TAG_NAME = re.compile(r"[0-9a-z._-]+")


SIGILS = "a rule is `!`, `=`, `%` or nothing, then an absolute path: =/work/out/*.tar"


def one_of(*values: str) -> Check:
    """One of a few words."""

    def check(value: object, place: Place) -> str:
        found = text(value, place)
        if isinstance(value, str) and found and found not in values:
            options = " or ".join(f'"{option}"' for option in values)
            place.fault(f"{place.label} cannot be `{clip(found)}`", f"the only value so far is {options}")
        return found

    return check


def _span(most: int) -> Check:
    """Seconds from 1 to `most`."""

    def check(value: object, place: Place) -> int | None:
        seconds = parse_duration(value)
        if isinstance(seconds, str):
            place.fault(f"{place.label}: {seconds}")
            return None
        if not 1 <= seconds <= most:
            place.fault(f"{place.label} must be from 1 second to {most // (24 * 3600)} days")
        return seconds

    return check


check_timeout = _span(limits.TIMEOUT_SECONDS)


check_hold = _span(limits.HOLD_SECONDS)


def check_on_failure(value: object, place: Place) -> bool:
    """Whether a failing script counts as a reason to retry."""
    return bool(one_of("retry")(value, place) == "retry")


def _rule(value: object, place: Place) -> OutputRule | None:
    before = len(place.faults)
    found = text(value, place, most=limits.OUTPUT_RULE_CHARS)
    if len(place.faults) > before:
        return None
    rule = parse_output_rule(found)
    if isinstance(rule, str):
        place.fault(f"{place.label}: {rule}", SIGILS)
        return None
    return rule


check_output_rules = listed(_rule, limits.OUTPUT_RULES, "output rules")


def check_env(value: object, place: Place) -> dict[str, str]:
    found = _strings(value, place, limits.ENV_ENTRIES, _env_name)
    size = sum(len(text.encode("utf-8", "surrogatepass")) for pair in found.items() for text in pair)
    if size > limits.ENV_BYTES:
        message = f"{place.label} takes {size} bytes; it may take at most {limits.ENV_BYTES}"
        place.fault(message, "write what is big into a file from the script")
    return found


def check_tags(value: object, place: Place) -> dict[str, str]:
    found = _strings(value, place, limits.TAGS, _tag_name)
    for name, tag in found.items():
        if len(tag) > limits.TAG_VALUE_CHARS:
            here = place / name
            here.fault(f"{here.label} has {len(tag)} characters; it may have at most {limits.TAG_VALUE_CHARS}")
    return found


def _strings(value: object, place: Place, most: int, name_fault: Callable[[str], str | None]) -> dict[str, str]:
    """A table of strings whose names pass."""
    found: dict[str, str] = {}
    for name, entry in entries(value, place, most, "a table of strings"):
        here = place / name
        if fault := name_fault(name):
            here.fault(f"{here.label}: {fault}", on_key=True)
        if not isinstance(entry, str):
            wanted("a string", entry, here, "put it in double quotes")
        elif bad := NOT_TEXT.search(entry):
            here.fault(f"{here.label} holds the character U+{ord(bad[0]):04X}, which is no text")
        else:
            found[name] = entry
    return found


def _env_name(name: str) -> str | None:
    if not ENV_NAME.fullmatch(name):
        return "a variable's name is letters, digits and _, and starts with no digit"
    if name.startswith(("PENSTOCK_", "BUILDOMAT_")):
        return "names that start so are set by the service itself"
    return None


def _tag_name(name: str) -> str | None:
    if not TAG_NAME.fullmatch(name):
        return "a tag's name is lower-case letters, digits and . _ - only"
    if len(name) > limits.TAG_NAME_CHARS:
        return f"a tag's name has at most {limits.TAG_NAME_CHARS} characters"
    return None


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


@dataclass(frozen=True)
class Key:
    """One key at the top of the document; its default is that of `JobFile`.

    `common` keys are checked even in a job that is not enabled.
    """

    name: str
    check: Check
    required: str | None = None
    common: bool = False


_TABLE = (
    Key("name", text, required='name = "build"', common=True),
    Key("variety", one_of("basic"), required='variety = "basic"', common=True),
    Key("enable", flag, common=True),
    Key("dependencies", check_dependencies, common=True),
    Key("target", text),
    Key("output_rules", check_output_rules),
    Key("rust_toolchain", check_toolchain),
    Key("access_repos", check_access_repos),
    Key("publish", check_publish),
    Key("skip_clone", flag),
    Key("resources", check_resources),
    Key("cache", check_caches),
    Key("timeout", check_timeout),
    Key("priority", number(-limits.PRIORITY, limits.PRIORITY)),
    Key("retries", number(0, limits.RETRIES)),
    Key("on_failure", check_on_failure),
    Key("hold_on_failure", check_hold),
    Key("env", check_env),
    Key("matrix", check_matrix),
    Key("tags", check_tags),
    Key("paths", check_paths),
    Key("post", check_posts),
)


KEYS = {key.name: key for key in _TABLE}


# Words that people try, and what the format has instead.
INSTEAD = dict.fromkeys(("enabled", "disable", "disabled"), 'use "enable" to disable a job')


COMMON = {*INSTEAD, *(key.name for key in _TABLE if key.common)}


def check_key(name: str, value: object) -> tuple[Any, tuple[Fault, ...]]:
    """One key's value from anywhere (a request, an option), checked as if it stood in a file."""
    place = Place((name,))
    return KEYS[name].check(value, place), tuple(place.faults)


def check_document(document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Fault, ...]]:
    """The checked value of every key that is there, and all faults; worthless values where there are faults.

    A job that is not enabled is checked no further than what it shares with every variety.
    """
    top = Place()
    for name in islice((name for name in document if name not in KEYS), GUESSES):
        hint = INSTEAD.get(name) or did_you_mean(name, KEYS)
        (top / name).fault(f"unknown key `{clip(name)}`", hint, on_key=True)
    for key in KEYS.values():
        if key.required and key.name not in document:
            top.fault(f"the header has no `{key.name}`", _missing(key.name, key.required, document))
    values = {name: key.check(document[name], top / name) for name, key in KEYS.items() if name in document}
    if "matrix" in values:
        check_references(document, values["matrix"], top)
    for found in values.get("dependencies", ()):
        if found.job == values.get("name"):
            (top / "dependencies" / found.name).fault("the job depends on itself", "name another job")
    faults = tuple(_explain_swallowed(fault) for fault in top.faults)
    if document.get("enable") is False:
        forgiven = {fault.path[0] for fault in faults if fault.path} - COMMON
        values = {name: value for name, value in values.items() if name not in forgiven}
        faults = tuple(fault for fault in faults if not fault.path or fault.path[0] not in forgiven)
    return values, faults


def _missing(name: str, example: str, document: Mapping[str, Any]) -> str:
    """How to add a key; or that it is there, but in a table that was opened above it."""
    for table, content in document.items():
        if isinstance(content, Mapping) and name in content:
            return f"the one in `{clip(table)}` belongs to that table: write it above the table's line"
    return f"add a line `#: {example}`"


def _explain_swallowed(fault: Fault) -> Fault:
    """A hint for a key of the job that stands below a table's line, and so became part of the table."""
    *table, last = fault.path or ("",)
    if not table or last not in KEYS or not (fault.on_key or len(table) == 1):
        return fault
    name = ".".join(str(step) for step in table if isinstance(step, str))
    hint = (
        f"`{last}` is a key of the job: write it above the `{clip(name)}` table's line, "
        "as all that follows that line belongs to the table"
    )
    return replace(fault, hint=hint)
