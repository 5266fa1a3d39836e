"""The table of a job file's keys, and the check of a whole document against it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from penstock.domain.jobfile.caches import check_caches
from penstock.domain.jobfile.matrix import check_matrix, check_references
from penstock.domain.jobfile.paths import check_paths
from penstock.domain.jobfile.posts import check_posts
from penstock.domain.jobfile.relations import (
    check_access_repos,
    check_dependencies,
    check_publish,
    check_toolchain,
)
from penstock.domain.jobfile.resources import check_resources
from penstock.domain.jobfile.settings import (
    check_env,
    check_hold,
    check_on_failure,
    check_output_rules,
    check_tags,
    check_timeout,
    one_of,
)
from penstock.kernel import limits
from penstock.toml.checks import GUESSES, Check, Fault, Place, clip, did_you_mean, flag, number, text

__all__ = ["KEYS", "check_document", "check_key"]


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
