"""The sections of a job file, and the check of each: what they may say, and the values that come of it.

`output_rules` (`/work/*.log` with the sigils `!`, `=` and `%` before it), `[[post]]` (scripts that run after it),
`cache` (files that are there when the job begins, and are stored for later jobs when it succeeded), `resources` (what
the job needs besides its worker), and what ties a job to other jobs, to repositories and to published files.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import islice
from typing import Annotated, Any

from penstock.domain.jobs.dependencies import On
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import (
    GUESSES,
    NOT_TEXT,
    Fault,
    Place,
    clip,
    entries,
    flag,
    listed,
    matching,
    record,
    text,
    wanted,
)


@dataclass(frozen=True)
class OutputRule:
    """Which files to keep. `path` is an absolute pattern; `text` the rule as written.

    `ignore` never keeps a match; `require_match` fails the job if nothing matched; `size_change_ok` lets
    files change or vanish while they are read.
    """

    path: str
    ignore: bool
    require_match: bool
    size_change_ok: bool
    text: str

    def __str__(self) -> str:
        sigils = "!" * self.ignore + "%" * self.size_change_ok + "=" * self.require_match
        return sigils + self.path


# What may follow the sigils read so far, besides the slash that starts the path.
NEXT = {"": "!=%", "!": "", "=": "%", "%": "=", "=%": "", "%=": ""}


def parse_output_rule(text: str) -> OutputRule | str:
    """The rule, or a sentence that says which character is wrong."""
    sigils = ""
    for at, char in enumerate(text):
        if char == "/":
            return OutputRule(text[at:], "!" in sigils, "=" in sigils, "%" in sigils, text)
        if char not in NEXT[sigils]:
            return _unwanted(char, sigils)
        sigils += char
    return "output rule pattern must be absolute path"


def _unwanted(char: str, sigils: str) -> str:
    if not sigils:
        return f"wanted sigil/absolute path, not {char!r}"
    if NEXT[sigils]:
        return f"{char!r} unexpected in output rule"
    return f"wanted '/', not {char!r}, in output rule"


REFERENCE = re.compile(r"\$\{\{\s*matrix\.([^\s}]*)\s*\}\}")


def fill(content: str, values: Mapping[str, str]) -> str:
    """A text with the values of one combination."""
    return REFERENCE.sub(lambda found: values.get(found[1], found[0]), content)


POST_ON = ("success", "failure", "always")


POST_NAME = "[A-Za-z0-9._-]{1,48}"
POST_EXAMPLE = '[[post]] with name = "collect", on = "failure", script = "tar -cf /work/cores.tar /cores"'


@dataclass(frozen=True)
class Post:
    """A script that runs after the job's own: when that succeeded, when it failed, or always."""

    name: Annotated[str, "Its name."]
    on: Annotated[str, "When it runs: `success`, `failure` or `always`."]
    script: Annotated[str, "The script."]


def _post_on(value: object, place: Place) -> str:
    if not isinstance(value, str):
        wanted("a string", value, place, 'like "always"')
        return ""
    if value not in POST_ON:
        place.fault(f"{place.label} cannot be `{clip(value)}`", f"there are: {', '.join(POST_ON)}")
    return value


def _post_script(value: object, place: Place) -> str:
    if not isinstance(value, str):
        wanted("a script", value, place, 'in quotes: "tar -cf /work/cores.tar /cores"')
        return ""
    if not value.strip():
        place.fault(f"{place.label} is empty")
    elif bad := NOT_TEXT.search(value):
        place.fault(f"{place.label} holds the character U+{ord(bad[0]):04X}, which is no text")
    return value


_post_name = matching(POST_NAME, "a name", "1 to 48 of A-Z a-z 0-9 . _ -: it stands in the log")


_post_table = record({"name": _post_name, "on": _post_on, "script": _post_script}, {}, POST_EXAMPLE)


_post_tables = listed(_post_table, limits.POSTS, "[[post]] tables")


def check_posts(value: object, place: Place) -> tuple[Post, ...]:
    """The scripts in their order. No name twice: the log knows them by it."""
    found = [Post(**{"name": "", "on": "", "script": "", **table}) for table in _post_tables(value, place)]
    seen: set[str] = set()
    for at, post in enumerate(found):
        if post.name and post.name in seen:
            (place / at / "name").fault(f"there is a post `{clip(post.name)}` already", "give each its own name")
        seen.add(post.name)
    return tuple(found)


CACHE_EXAMPLE = '[cache.deps] with paths = ["deps"], key = "deps-1"'


PLACEHOLDER = re.compile(r'\{\{\s*hash(\s+"[^"{}]+")+\s*\}\}')


PLACEHOLDER_HINT = 'there is {{ hash "FILE" }}, with one file or pattern in quotes, or more'


PLAIN = re.compile(r"[ -~]*")


@dataclass(frozen=True)
class CacheAsk:
    """A cache that a job restores before its first task and saves when it has succeeded.

    Paths and keys are as the job file has them: the agent resolves paths, and fills in placeholders.
    """

    name: Annotated[str, "Its name."]
    paths: Annotated[tuple[str, ...], "The paths to cache."]
    key: Annotated[str, "The entry's key."]
    restore_keys: Annotated[
        tuple[str, ...], "Prefixes of keys to accept, in order, if there is no entry of that key."
    ] = ()


_cache_name = matching(
    f"[0-9A-Za-z][0-9A-Za-z._-]{{0,{limits.CACHE_NAME_CHARS - 1}}}", "a cache's name", "letters, digits and . _ - only"
)


def check_caches(value: object, place: Place) -> tuple[CacheAsk, ...]:
    """A table of tables; the order stays."""
    asks = []
    for name, settings in entries(value, place, limits.CACHES, f"tables like {CACHE_EXAMPLE}"):
        _cache_name(name, place / name)
        asks.append(CacheAsk(**{"paths": (), "key": "", **_cache_table(settings, place / name), "name": name}))
    return tuple(asks)


def _cache_paths(value: object, place: Place) -> tuple[str, ...]:
    found: tuple[str, ...] = _listed_paths(value, place)
    if isinstance(value, list) and not value:
        place.fault(f"{place.label} names nothing", 'like paths = ["target"]')
    return found


def _cache_path(value: object, place: Place) -> str:
    found = text(value, place, most=limits.CACHE_PATH_CHARS)
    steps = found.strip("/").split("/")
    if ".." in steps:
        place.fault(f"{place.label}: `..` leads out of what is named", "name the folder itself")
    elif found and not any(steps):
        place.fault(f"{place.label} is all of the machine", "name a folder")
    return found


def _cache_template(value: object, place: Place) -> str:
    """A text in which placeholders may stand, and references to values of a matrix."""
    found = text(value, place, most=limits.CACHE_KEY_CHARS)
    left = PLACEHOLDER.sub("", REFERENCE.sub("", found))
    if "{{" in left or "}}" in left:
        at = max(left.find("{{"), 0)
        place.fault(f"{place.label}: `{clip(left[at:])}` is no placeholder", PLACEHOLDER_HINT)
    elif not PLAIN.fullmatch(found):
        place.fault(f"{place.label} holds characters that are not ASCII", "letters, digits, spaces and punctuation")
    return found


def fill_cache(ask: CacheAsk, values: Mapping[str, str]) -> CacheAsk:
    """A cache with the values of one combination of a matrix."""
    filled: dict[str, Any] = {
        "paths": tuple(fill(each, values) for each in ask.paths),
        "key": fill(ask.key, values),
        "restore_keys": tuple(fill(each, values) for each in ask.restore_keys),
    }
    return replace(ask, **filled)


_listed_paths = listed(_cache_path, limits.CACHE_PATHS, "paths")


_cache_table = record(
    {"paths": _cache_paths, "key": _cache_template},
    {"restore_keys": listed(_cache_template, limits.CACHE_RESTORE_KEYS, "beginnings of keys")},
    CACHE_EXAMPLE,
)

OPTION_DEPTH = 8
INT64 = 2**63
RESOURCE_EXAMPLE = '[resources.db] with type = "database"'


@dataclass(frozen=True)
class ResourceAsk:
    """One resource that the job asks for; `bmat` knows it by `name`; the well of `type` checks `options`.

    `spot` is the line and column of its options in the job file, if they stand in one.
    """

    name: str
    type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    spot: tuple[int, int] | None = field(default=None, compare=False)


_resource_type = matching("[0-9A-Za-z][0-9A-Za-z._-]*", "a resource type", "letters, digits and . _ - only")


_resource_name = matching("[0-9A-Za-z][0-9A-Za-z._-]*", "a resource name", "letters, digits and . _ - only")


def check_resources(value: object, place: Place) -> tuple[ResourceAsk, ...]:
    """A list of types, or a table of tables; the order stays."""
    if isinstance(value, list | tuple):
        return _resources_from_list(value, place)
    if not isinstance(value, Mapping):
        wanted(f"a list of resource types, or tables like {RESOURCE_EXAMPLE}", value, place)
        return ()
    asks = []
    for name, settings in entries(value, place, limits.RESOURCES, "tables"):
        _resource_name(name, place / name)
        found = _resource_table(settings, place / name)
        asks.append(ResourceAsk(name, found.get("type", ""), found.get("options", {})))
    return tuple(asks)


def _resources_from_list(value: list[Any] | tuple[Any, ...], place: Place) -> tuple[ResourceAsk, ...]:
    types = listed(_listed_type, limits.RESOURCES, "resource types")(value, place)
    for at, found in enumerate(types):
        if found and found in types[:at]:
            hint = f'two of one type need names: [resources.one] and [resources.two], both with type = "{found}"'
            (place / at).fault(f"`{found}` is listed twice", hint)
    return tuple(ResourceAsk(found, found) for found in types)


def _listed_type(value: object, place: Place) -> str:
    if isinstance(value, Mapping):
        wanted("a resource type in quotes", value, place, f"to give settings, write {RESOURCE_EXAMPLE}")
        return ""
    return str(_resource_type(value, place))


def check_options(value: object, place: Place) -> Mapping[str, Any]:
    """A table that can be kept as JSON; what it means is the well's to check."""
    if not isinstance(value, Mapping):
        wanted("a table", value, place, 'like { size = "small" }')
        return {}
    faults = list(islice(_option_faults(value, place, OPTION_DEPTH), GUESSES))
    for here, message in faults:
        here.fault(message)
    if not faults and (size := len(json.dumps(value))) > limits.RESOURCE_OPTIONS_BYTES:
        most = limits.RESOURCE_OPTIONS_BYTES
        place.fault(f"{place.label} takes {size} bytes as JSON; it may take at most {most}")
    return value


def _option_faults(value: object, place: Place, depth: int) -> Iterator[tuple[Place, str]]:
    """What JSON or the database could not hold."""
    if depth < 0:
        yield place, f"options may be nested at most {OPTION_DEPTH} deep"
    elif isinstance(value, Mapping):
        for name, entry in value.items():
            for part in (name, entry):
                yield from _option_faults(part, place / name, depth - 1)
    elif isinstance(value, list):
        for at, entry in enumerate(value):
            yield from _option_faults(entry, place / at, depth - 1)
    elif unfit := _unfit(value):
        yield place, f"{place.label} wants {unfit}"


def _unfit(value: object) -> str | None:
    """What a single value would have to be, if it cannot be kept."""
    if isinstance(value, str):
        return "text without NUL" if NOT_TEXT.search(value) else None
    if isinstance(value, float):
        return None if math.isfinite(value) else "a finite number"
    if isinstance(value, int):
        return None if -INT64 <= value < INT64 else "a number of at most 64 bits"
    return "a string, number, true, false, list or table: put it in double quotes"


_resource_table = record({"type": _resource_type}, {"options": check_options}, RESOURCE_EXAMPLE)

# buildomat's files never had more than 14 `publish` tables.
PUBLISHES = 100
REPOSITORIES = 100


@dataclass(frozen=True)
class Dependency:
    """A job before this one, by the name that its own file gives it; or, in a request, by its id.

    It is to end as `on` says. With `copy_outputs` its outputs appear below /input/`name`. `spot` is the line and column
    of `job` in the job file, if it stands in one.
    """

    name: str
    job: str
    on: On = On.SUCCESS
    copy_outputs: bool = True
    spot: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Publish:
    """The output with the exact path `from_output` is published as `name` of a `series`, when the job has succeeded.

    `version` is empty where the file says none: it is the commit then.
    """

    from_output: str
    series: str
    name: str
    version: str = ""


FOLDER_BYTES = 255


def _output_path(value: object, place: Place) -> str:
    """Whatever names an output; one that is not absolute matches none, and files that were written so still run."""
    return text(value, place, limits.OUTPUT_PATH_CHARS)


_publish_part = matching(
    rf"(?!\.+\Z)(?:[0-9A-Za-z._-]|{REFERENCE.pattern}){{1,100}}",
    "a part of a published name",
    "it has 1 to 100 of A-Z a-z 0-9 . _ -",
)


_publish = record(
    {"from_output": _output_path, "series": _publish_part, "name": _publish_part},
    {"version": _publish_part},
    '[[publish]] with from_output = "/work/a.tar", series = "image", name = "a.tar"',
)


_repository = matching("[0-9A-Za-z._-]+/[0-9A-Za-z._-]+", "a repository", 'like "owner/name"')


def _dependency_on(value: object, place: Place) -> On:
    found = text(value, place)
    if isinstance(value, str) and found not in list(On):
        place.fault(f"{place.label} cannot be `{clip(found)}`", f"there are: {', '.join(On)}")
        return On.SUCCESS
    return On(found) if found else On.SUCCESS


_dependency = record(
    {"job": text},
    {"on": _dependency_on, "copy_outputs": flag},
    '[dependencies.build] with job = "name of the other job"',
)


def check_dependencies(value: object, place: Place) -> tuple[Dependency, ...]:
    return _dependencies(value, place, deep=1)


def check_asked(value: object) -> tuple[tuple[Dependency, ...], tuple[Fault, ...]]:
    """The dependencies of a request. A name may be that of a file's dependency, `/`, and which of its jobs it is."""
    top = Place(("dependencies",))
    return _dependencies(value, top, deep=2), tuple(top.faults)


def _dependencies(value: object, place: Place, deep: int) -> tuple[Dependency, ...]:
    found = []
    for name, settings in entries(value, place, limits.DEPENDENCIES, "tables like [dependencies.build]"):
        here = place / name
        text(name, here)
        for part in name.split("/", deep - 1):
            check_folder(part, here, "a dependency's name")
        found.append(Dependency(**{"job": "", **_dependency(settings, here), "name": name}))
    return tuple(found)


def check_folder(name: str, place: Place, what: str) -> None:
    """A name that becomes that of an entry of /input."""
    if "/" in name:
        place.fault(f"{place.label}: no `/` in {what}", "it names a folder of /input", on_key=True)
    elif name in (".", "..") or len(name.encode("utf-8", "surrogatepass")) > FOLDER_BYTES:
        most = f"it has at most {FOLDER_BYTES} bytes, and is neither . nor .."
        place.fault(f"{place.label} cannot be {what}", most, on_key=True)


def check_inputs(names: Sequence[str], folders: Sequence[str]) -> tuple[Fault, ...]:
    """What is wrong with the names of files that are sent with a job; `folders` are those of its dependencies."""
    top = Place(("inputs",))
    if len(names) > limits.INPUTS:
        top.fault(f"`inputs` has {len(names)} entries; it may have at most {limits.INPUTS}")
    for at, name in enumerate(names[: limits.INPUTS]):
        here = top / at
        text(name, here)
        check_folder(name, here, "an input's name")
        if name in names[:at] or name in folders:
            here.fault(f"/input/{clip(name)} is there twice", "give one of them another name")
    return tuple(top.faults)


def check_publish(value: object, place: Place) -> tuple[Publish, ...]:
    tables = listed(_publish, PUBLISHES, "[[publish]] tables")(value, place)
    return tuple(Publish(**{"from_output": "", "series": "", "name": "", **table}) for table in tables)


def check_toolchain(value: object, place: Place) -> bool | str:
    """A channel, or true for the one the repository names, or false for none."""
    if isinstance(value, bool | str):
        return value if isinstance(value, bool) else text(value, place)
    wanted('true, false or a channel like "stable"', value, place)
    return False


check_access_repos = listed(_repository, REPOSITORIES, "repositories")
