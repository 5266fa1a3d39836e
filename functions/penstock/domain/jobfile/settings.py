"""Checks of the keys that say how a job runs: rules, times, retries, environment, tags."""

import re
from collections.abc import Callable

from penstock.domain.jobfile.rules import OutputRule, parse_output_rule
from penstock.kernel import limits
from penstock.toml.checks import NOT_TEXT, Check, Place, clip, entries, listed, parse_duration, text, wanted

__all__ = ["check_env", "check_hold", "check_on_failure", "check_output_rules", "check_tags", "check_timeout", "one_of"]

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
