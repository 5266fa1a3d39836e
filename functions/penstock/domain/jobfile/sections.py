"""The values of a job file's keys, and the check of each: what they may say, and what comes of it.

`output_rules` (`/work/*.log` with the sigils `!`, `=` and `%` before it), `[[post]]` (scripts that run after it),
`cache` (files that are there when the job begins, and are stored for later jobs when it succeeded), what ties a job to
other jobs, to repositories and to published files, times, retries, environment, tags, and the patterns of `paths`: they
are those of a .gitignore. `parse` has the table of all keys, and checks `resources`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any

from penstock.domain.jobs.dependencies import On
from penstock.kernel import limits
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import (
    NOT_TEXT,
    Check,
    Fault,
    Place,
    clip,
    entries,
    flag,
    listed,
    matching,
    parse_duration,
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


REFERENCE = r"\$\{\{\s*matrix\.([^\s}]*)\s*\}\}"


def fill(content: str, values: Mapping[str, str]) -> str:
    """A text with the values of one combination."""
    return re.sub(REFERENCE, lambda found: values.get(found[1], found[0]), content)


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
    elif bad := re.search(NOT_TEXT, value):
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


PLACEHOLDER = r'\{\{\s*hash(\s+"[^"{}]+")+\s*\}\}'


PLACEHOLDER_HINT = 'there is {{ hash "FILE" }}, with one file or pattern in quotes, or more'


PLAIN = r"[ -~]*"


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
    left = re.sub(PLACEHOLDER, "", re.sub(REFERENCE, "", found))
    if "{{" in left or "}}" in left:
        at = max(left.find("{{"), 0)
        place.fault(f"{place.label}: `{clip(left[at:])}` is no placeholder", PLACEHOLDER_HINT)
    elif not re.fullmatch(PLAIN, found):
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
    rf"(?!\.+\Z)(?:[0-9A-Za-z._-]|{REFERENCE}){{1,100}}",
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


def _dependency(*, is_open: bool) -> Check:
    example = '[dependencies.build] with job = "name of the other job"'
    return record({"job": text}, {"on": _dependency_on, "copy_outputs": flag}, example, is_open=is_open)


_written_dependency, _requested_dependency = _dependency(is_open=True), _dependency(is_open=False)


def check_dependencies(value: object, place: Place) -> tuple[Dependency, ...]:
    """The dependencies of a job file. Unknown keys are ignored, as in buildomat: existing files have some."""
    return _dependencies(value, place, _written_dependency, deep=1)


def check_asked(value: object) -> tuple[tuple[Dependency, ...], tuple[Fault, ...]]:
    """The dependencies of a request. A name may be that of a file's dependency, `/`, and which of its jobs it is."""
    top = Place(("dependencies",))
    return _dependencies(value, top, _requested_dependency, deep=2), tuple(top.faults)


def _dependencies(value: object, place: Place, check: Check, deep: int) -> tuple[Dependency, ...]:
    found = []
    for name, settings in entries(value, place, limits.DEPENDENCIES, "tables like [dependencies.build]"):
        here = place / name
        text(name, here)
        for part in name.split("/", deep - 1):
            check_folder(part, here, "a dependency's name")
        if deep > 1 and "/" in name and "" in name.split("/"):
            here.fault(f"{here.label}: nothing stands on one side of the `/`", "like build/linux", on_key=True)
        found.append(Dependency(**{"job": "", **check(settings, here), "name": name}))
    _check_apart(found, place)
    return tuple(found)


def _check_apart(found: Sequence[Dependency], place: Place) -> None:
    """No outputs are copied into a folder of another job's outputs: files of both could have the same path."""
    copied = {each.name for each in found if each.copy_outputs}
    for name in sorted(copied):
        top, slash, _ = name.partition("/")
        if slash and top in copied:
            here, hint = place / name, "name both like build/linux, or set copy_outputs = false for one"
            here.fault(f"{here.label}: its folder is inside that of `{clip(top)}`", hint, on_key=True)


def check_folder(name: str, place: Place, what: str) -> None:
    """A name that becomes that of an entry of /input."""
    if "/" in name:
        place.fault(f"{place.label}: no `/` in {what}", "it names a folder of /input", on_key=True)
    elif name in (".", "..") or len(name.encode("utf-8", "surrogatepass")) > FOLDER_BYTES:
        most = f"it has at most {FOLDER_BYTES} bytes, and is neither . nor .."
        place.fault(f"{place.label} cannot be {what}", most, on_key=True)


def check_inputs(names: Sequence[str], folders: Sequence[str]) -> tuple[Fault, ...]:
    """What is wrong with the names of files that are sent with a job; `folders` are those of its dependencies. One of
    them may be in another: what is before its `/` is taken then.
    """
    top, tops = Place(("inputs",)), {folder.partition("/")[0] for folder in folders}
    if len(names) > limits.INPUTS:
        top.fault(f"`inputs` has {len(names)} entries; it may have at most {limits.INPUTS}")
    for at, name in enumerate(names[: limits.INPUTS]):
        here = top / at
        text(name, here)
        check_folder(name, here, "an input's name")
        if name in names[:at] or name in tops:
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


ENV_NAME = r"[A-Za-z_][0-9A-Za-z_]*"


TAG_NAME = r"[0-9a-z._-]+"


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


check_max_wait = _span(limits.QUEUE_SECONDS)


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
        elif bad := re.search(NOT_TEXT, entry):
            here.fault(f"{here.label} holds the character U+{ord(bad[0]):04X}, which is no text")
        else:
            found[name] = entry
    return found


def _env_name(name: str) -> str | None:
    if not re.fullmatch(ENV_NAME, name):
        return "a variable's name is letters, digits and _, and starts with no digit"
    if name.startswith(("PENSTOCK_", "BUILDOMAT_")):
        return "names that start so are set by the service itself"
    return None


def _tag_name(name: str) -> str | None:
    if not re.fullmatch(TAG_NAME, name):
        return "a tag's name is lower-case letters, digits and . _ - only"
    if len(name) > limits.TAG_NAME_CHARS:
        return f"a tag's name has at most {limits.TAG_NAME_CHARS} characters"
    return None


CHARACTER_SETS = r"\[[!^]?([^\[\]!^/-]|[^\[\]!^/-]-[^\[\]!^/-])+\]"


PATTERN_HINT = "like src/**, or !docs/** to leave some out"


def _pattern(value: object, place: Place) -> str:
    before = len(place.faults)
    found = text(value, place, limits.PATH_CHARS)
    wrong = None if len(place.faults) > before else _wrong_pattern(found.removeprefix("!"))
    if wrong:
        place.fault(f"{place.label}: `{clip(found)}` {wrong}", PATTERN_HINT)
    return found


def _wrong_pattern(pattern: str) -> str | None:
    """What is wrong with a pattern that has no `!` before it any more."""
    steps = pattern.removeprefix("/").removesuffix("/").split("/")
    if pattern[:1] in ("", "!", "#") or pattern != pattern.strip():
        return "is not a pattern: there is one `!` at most, no `#` before it, and no space around it"
    if "" in steps or "." in steps or ".." in steps:
        return "names no file: paths are from the top of the repository, and have no empty step, `.` or `..`"
    if "\\" in pattern:
        return "holds a backslash: steps are parted by `/`, and nothing is escaped"
    if re.search(r"[\[\]]", re.sub(CHARACTER_SETS, "", pattern)):
        return "holds a bracket that is not closed, or a set of no characters"
    if any(
        first > last for each in re.finditer(CHARACTER_SETS, pattern) for first, last in re.findall(r"(.)-(.)", each[0])
    ):
        return "holds a range that ends before it begins"
    return None


check_paths = listed(_pattern, limits.PATHS, "patterns")
