"""From the text of a job file to a `JobFile`, or to everything that is wrong with it.

`decode` checks size and encoding; `read_header` finds the header, the unbroken run of `#` lines after the `#!` line,
whose `#:` lines are TOML; `parse` checks it by the table of keys, as `check_key` checks one of them. `variant` makes
one job of a file with a matrix.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from functools import cached_property
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from penstock.domain.jobfile.containers import Service, check_own_image, check_services, fill_service
from penstock.domain.jobfile.machine import Machine, check_machine
from penstock.domain.jobfile.matrix import Matrix, check_matrix, check_references, variable
from penstock.domain.jobfile.resources import RESOURCE_EXAMPLE, ResourceAsk, check_host, check_tables, resource_type
from penstock.domain.jobfile.sections import (
    CacheAsk,
    Dependency,
    OutputRule,
    Post,
    Publish,
    check_access_repos,
    check_caches,
    check_dependencies,
    check_env,
    check_hold,
    check_max_wait,
    check_on_failure,
    check_output_rules,
    check_paths,
    check_posts,
    check_publish,
    check_tags,
    check_timeout,
    check_toolchain,
    fill,
    fill_cache,
    one_of,
    parse_output_rule,
)
from penstock.domain.pools.choices import Choice
from penstock.kernel import limits
from penstock.kernel.errors import Problem, Problems
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import (
    GUESSES,
    Check,
    Fault,
    Path,
    Place,
    clip,
    did_you_mean,
    flag,
    listed,
    matching,
    number,
    text,
    wanted,
)
from penstock.toml.document import AT, BOM, TOML_HINTS, Spot, locate, nearest, tokenise, too_deep


def decode(source: str | bytes, path: str) -> str | Problem:
    """The text of a job file, or the one problem that leaves nothing to look at."""
    data = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if not data:
        return Problem(path, 1, 1, "the file is empty", "start it with `#!/bin/bash`")
    if len(data) > limits.SCRIPT_BYTES:
        message = f"the file has {len(data)} bytes; a job file may have at most {limits.SCRIPT_BYTES}"
        return Problem(path, 1, 1, message, "let the script fetch what is big")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        message = f"not text in UTF-8: byte 0x{data[error.start]:02x} cannot stand here"
        return _at(before, path, message, "save the file as UTF-8; a job file is a script, not a program")
    nul = text.find("\0")
    if nul >= 0:
        hint = "a job file is a script in UTF-8, not a program and not UTF-16"
        return _at(text[:nul], path, "a NUL byte: this is not text", hint)
    return text


def flaws(text: str, header_end: int, path: str) -> Iterator[Problem]:
    """What is wrong with the first lines themselves; `header_end` counts the header's lines, `#!` included.

    A carriage return below the header is left alone: here-documents hold them on purpose.
    """
    if text.startswith(BOM):
        hint = "save the file as UTF-8 without a byte order mark: with one the `#!` is not seen"
        yield Problem(path, 1, 1, "the file starts with a byte order mark", hint)
    lines = text.split("\n")
    if not lines[0].removeprefix(BOM).startswith("#!"):
        message = "a job file must have an interpreter line"
        yield Problem(path, 1, 1, message, "make the very first line `#!/bin/bash`")
    for row, line in enumerate(lines[: max(header_end, 1)], 1):
        if line.endswith("\r"):
            hint = "save the file with Unix line ends: `sed -i 's/\\r$//' FILE`"
            yield Problem(path, row, len(line), "the line ends with a carriage return (CRLF)", hint)
            return


def _at(before: str, path: str, message: str, hint: str) -> Problem:
    """A problem right after the text `before`."""
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return Problem(path, line, column, message, hint)


TOOLCHAIN_FILE = "rust-toolchain.toml"
"""The file in a repository that names its Rust toolchain."""

MARK = "#:"


INDENTED = r"[ \t]+#:"


# `<<WORD`, `<<-WORD`, `<<'WORD'`; not `<<<`.
HERE_DOCUMENT = r"(?<!<)<<-?[ \t]*[\\'\"]?([A-Za-z_]\w*)"


@dataclass(frozen=True)
class TomlLine:
    """A `#:` line without its mark, its line number in the file, and how many characters the mark took."""

    text: str
    number: int
    margin: int


@dataclass(frozen=True)
class Header:
    """The TOML of a job file, and where its lines stand.

    `end` is the number of lines up to the header's last, `late` the `#:` lines below it that nobody reads,
    `cut` the text of the line that ended the header.
    """

    lines: tuple[TomlLine, ...]
    end: int
    late: tuple[int, ...]
    cut: str

    @cached_property
    def toml(self) -> str:
        return "\n".join(line.text for line in self.lines)

    def place(self, line: int, column: int) -> tuple[int, int]:
        """The file's line and column of the TOML's, all counted from 1."""
        there = self.lines[line - 1]
        return there.number, there.margin + column

    def spot(self, offset: int) -> tuple[int, int]:
        """The file's line and column of an offset into the TOML."""
        before = self.toml[:offset]
        return self.place(before.count("\n") + 1, offset - before.rfind("\n"))

    def problems(self, path: str) -> Iterator[Problem]:
        """The `#:` lines that were meant to count and don't."""
        if not self.late:
            return
        if self.late[0] == self.end + 1:
            hint = "remove the spaces before `#:`"
        elif self.cut:
            hint = f"move them up: line {self.end + 1} is code, and only lines directly below `#!` are read"
        else:
            hint = f"line {self.end + 1} is empty: write a `#` on it, or move the lines above it"
        message = f"the header ended at line {self.end + 1}; these `#:` lines are never read"
        yield Problem(path, self.late[0], 1, message, hint)


def read_header(text: str) -> Header:
    """Cut a script into its header and the rest."""
    lines = [line.rstrip("\r") for line in text.removeprefix(BOM).split("\n")]
    end = 1
    while end < len(lines) and lines[end].startswith("#"):
        end += 1
    # Line 1 counts when the `#!` is missing, so that one slip does not hide every other.
    toml = tuple(_unmark(line, at + 1) for at, line in enumerate(lines[:end]) if line.startswith(MARK))
    cut = lines[end].strip() if end < len(lines) else ""
    return Header(toml, end, tuple(at + 1 for at in _late(lines, end)), cut)


def _unmark(line: str, number: int) -> TomlLine:
    text = line
    while text.startswith(MARK):
        text = text.removeprefix(MARK)
    return TomlLine(text, number, len(line) - len(text))


def _late(lines: list[str], start: int) -> Iterator[int]:
    """Indexes of `#:` lines outside here-documents.

    The line that ended the header is one of them if only the spaces before its `#:` made it so.
    """
    last = {line.strip("\t"): at for at, line in enumerate(lines)}
    at = start
    while at < len(lines):
        line = lines[at]
        if line.startswith(MARK) or (at == start and re.match(INDENTED, line)):
            yield at
        found = None if line.startswith("#") else re.search(HERE_DOCUMENT, line)
        at += 1
        # A `<<WORD` that is never closed is no here-document but a shift.
        if found and last.get(found[1], -1) >= at:
            while lines[at].strip("\t") != found[1]:
                at += 1
            at += 1


@dataclass(frozen=True)
class JobFile:
    """What a job file asks for. `script` is the whole text, header and all; `timeout`, `max_wait` and
    `hold_on_failure` are in seconds.

    A file with no `#:` line is a plain script: it has no name. `name_spot` is the name's line and column, `spots` are
    those of keys that the target's factory checks; `ignored` are the keys that have no effect.
    """

    path: str
    script: str
    name: str | None = None
    target: str = "default"
    host: Choice | None = None
    image: str = ""
    services: tuple[Service, ...] = ()
    machine: Machine | None = None
    enable: bool = True
    skip_clone: bool = False
    output_rules: tuple[OutputRule, ...] = ()
    resources: tuple[ResourceAsk, ...] = ()
    cache: tuple[CacheAsk, ...] = ()
    timeout: int | None = None
    max_wait: int | None = None
    priority: int = 0
    retries: int | None = None
    retry_failed: bool = False
    environment: str = ""
    hold_on_failure: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    matrix: Matrix | None = None
    dependencies: tuple[Dependency, ...] = ()
    publish: tuple[Publish, ...] = ()
    paths: tuple[str, ...] = ()
    access_repos: tuple[str, ...] = ()
    rust_toolchain: bool | str | None = None
    post: tuple[Post, ...] = ()
    name_spot: tuple[int, int] | None = field(default=None, compare=False)
    spots: Mapping[str, tuple[int, int]] = field(default_factory=dict, compare=False)
    ignored: tuple[Problem, ...] = field(default=(), compare=False)

    @property
    def worker_options(self) -> dict[str, Any]:
        """What the job says of how its worker is made."""
        said = {"image": self.image, "services": {each.name: each.told for each in self.services}}
        return {key: value for key, value in said.items() if value}

    @property
    def toolchain(self) -> str:
        """The Rust channel to install, or the name of the repository's file that names it; "" for none."""
        if isinstance(self.rust_toolchain, str):
            return self.rust_toolchain
        return TOOLCHAIN_FILE if self.rust_toolchain else ""


def parse(text: str | bytes, path: str) -> JobFile | Problems:
    """Read a job file; `path` is only for messages. Never raises, whatever the text."""
    script = decode(text, path)
    if isinstance(script, Problem):
        return Problems((script,))
    header = read_header(script)
    problems = [*flaws(script, header.end, path), *header.problems(path)]
    values: dict[str, Any] = {}
    if header.lines:
        found = _read_values(header, path)
        if isinstance(found, list):
            problems += found
        else:
            values = found
    if problems:
        return Problems(tuple(sorted(problems, key=lambda one: (one.line, one.column))))
    return JobFile(path, script, **values)


def name_in(text: str | bytes, path: str) -> str:
    """What the job of a file is called, however wrong the rest of the file is; else what the file is called."""
    script = decode(text, path)
    header = read_header(script) if isinstance(script, str) else None
    with suppress(ValueError):
        if header and too_deep(tokenise(header.toml)) is None:
            name = tomllib.loads(header.toml).get("name", "")
            if not check_key("name", name)[1]:
                return str(name)
    return clip(PurePosixPath(path).stem, limits.NAME_CHARS) or "job"


def _read_values(header: Header, path: str) -> dict[str, Any] | list[Problem]:
    """The fields of a `JobFile` that the header gives, or what is wrong with it."""
    tokens = tokenise(header.toml)
    deep = too_deep(tokens)
    if deep is not None:
        return [Problem(path, *header.spot(deep), "this is nested too deeply", "no key needs more than three levels")]
    try:
        document = tomllib.loads(header.toml)
    except ValueError as error:
        return [_toml_problem(error, header, path)]
    spots = locate(tokens)
    values, faults, ignored = check_document(document)
    if header.late:
        # What is missing is likely in the lines below; one problem is enough for one slip.
        faults = tuple(fault for fault in faults if fault.path)
    if faults or header.late:
        return [_problem(fault, spots, header, path) for fault in faults]
    del values["variety"]
    if "resources" in values:
        values["resources"] = tuple(_placed(ask, spots, header) for ask in values["resources"])
    if "dependencies" in values:
        values["dependencies"] = tuple(_located(each, spots, header) for each in values["dependencies"])
    retry_failed = values.pop("on_failure", False)
    name_spot = header.spot(spots["name",].value)
    useless = tuple(_problem(fault, spots, header, path) for fault in ignored)
    places = {key: header.spot(spots[key,].key) for key in OF_FACTORIES if key in values}
    return {**values, "retry_failed": retry_failed, "name_spot": name_spot, "spots": places, "ignored": useless}


def _placed(ask: ResourceAsk, spots: dict[Path, Spot], header: Header) -> ResourceAsk:
    """A resource with where its options stand, if it has some."""
    tables = (ask.name, ask.name.rpartition(".")[0])  # the second, of one that has a `count`
    spot = next((spots[at] for name in tables if (at := ("resources", name, "options")) in spots), None)
    return replace(ask, spot=header.spot(spot.key)) if spot else ask


def _located(found: Dependency, spots: dict[Path, Spot], header: Header) -> Dependency:
    """A dependency with where the name of its job stands."""
    return replace(found, spot=header.spot(spots["dependencies", found.name, "job"].value))


def _toml_problem(error: ValueError, header: Header, path: str) -> Problem:
    """What the TOML parser said, at the file's line and column. Its errors are all kinds of `ValueError`."""
    said = str(error)
    at = re.search(AT, said)
    if at and at[1]:
        line, column = header.place(int(at[1]), int(at[2]))
    else:
        line, column = header.spot(len(header.toml))
    hint = next((hint for start, hint in TOML_HINTS.items() if said.startswith(start)), None)
    return Problem(path, line, column, f"not TOML: {re.sub(AT, '', said)}", hint)


def _problem(fault: Fault, spots: dict[Path, Spot], header: Header, path: str) -> Problem:
    spot = nearest(spots, fault.path)
    line, column = header.spot(spot.key if fault.on_key else spot.value)
    return Problem(path, line, column, fault.message, fault.hint)


def variant(file: JobFile, values: Mapping[str, str]) -> JobFile:
    """The job file of one combination: its matrix is filled in, and gone. What comes out of it is still to be checked.

    A name in which no value stands gets all of them: `build (a, fast)`.
    """
    env = {variable(axis): value for axis, value in values.items()}
    return replace(
        file,
        name=variant_name(file, values),
        target=fill(file.target, values),
        image=fill(file.image, values),
        services=tuple(fill_service(each, values) for each in file.services),
        env={**env, **{name: fill(content, values) for name, content in file.env.items()}},
        tags={name: fill(content, values) for name, content in file.tags.items()},
        output_rules=tuple(_filled(rule, values) for rule in file.output_rules),
        cache=tuple(fill_cache(each, values) for each in file.cache),
        dependencies=tuple(replace(each, job=fill(each.job, values)) for each in file.dependencies),
        publish=tuple(_published(each, values) for each in file.publish),
        matrix=None,
    )


def variant_name(file: JobFile, values: Mapping[str, str]) -> str:
    """What the job of one combination is called."""
    name = file.name or "job"
    filled = fill(name, values)
    return filled if filled != name else f"{name} ({', '.join(values.values())})"


def _published(each: Publish, values: Mapping[str, str]) -> Publish:
    return Publish(
        fill(each.from_output, values), fill(each.series, values), fill(each.name, values), fill(each.version, values)
    )


def _filled(rule: OutputRule, values: Mapping[str, str]) -> OutputRule:
    found = parse_output_rule(fill(rule.text, values))
    return found if isinstance(found, OutputRule) else rule


def check_resources(value: object, place: Place) -> tuple[ResourceAsk, ...]:
    """A list of types, or a table of tables; the order stays."""
    if isinstance(value, list | tuple):
        return _resources_from_list(value, place)
    if not isinstance(value, Mapping):
        wanted(f"a list of resource types, or tables like {RESOURCE_EXAMPLE}", value, place)
        return ()
    return check_tables(value, place)


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
    return str(resource_type(value, place))


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
    Key("machine", check_machine),
    Key("host", check_host),
    Key("image", check_own_image),
    Key("services", check_services),
    Key("output_rules", check_output_rules),
    Key("rust_toolchain", check_toolchain),
    Key("access_repos", check_access_repos),
    Key("publish", check_publish),
    Key("skip_clone", flag),
    Key("resources", check_resources),
    Key("cache", check_caches),
    Key("timeout", check_timeout),
    Key("max_wait", check_max_wait),
    Key("priority", number(-limits.PRIORITY, limits.PRIORITY)),
    Key("retries", number(0, limits.RETRIES)),
    Key("on_failure", check_on_failure),
    Key("hold_on_failure", check_hold),
    Key("environment", matching("[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "an environment", 'as in "production"')),
    Key("env", check_env),
    Key("matrix", check_matrix),
    Key("tags", check_tags),
    Key("paths", check_paths),
    Key("post", check_posts),
)


KEYS = {key.name: key for key in _TABLE}


# Words that people try, and what the format has instead.
INSTEAD = dict.fromkeys(("enabled", "disable", "disabled"), 'use "enable" to disable a job')


OF_FACTORIES = ("image", "services")
"""The keys that the factory of the job's target checks too."""

COMMON = {key.name for key in _TABLE if key.common}


def check_key(name: str, value: object) -> tuple[Any, tuple[Fault, ...]]:
    """One key's value from anywhere (a request, an option), checked as if it stood in a file."""
    place = Place((name,))
    return KEYS[name].check(value, place), tuple(place.faults)


def check_document(document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Fault, ...], tuple[Fault, ...]]:
    """The checked value of every key that is there, all faults, and all keys without effect; worthless values where
    there are faults.

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
        if found.job == values.get("name") and values.get("enable", True):
            (top / "dependencies" / found.name).fault("the job depends on itself", "name another job")
    faults = tuple(_explain_swallowed(fault) for fault in top.faults)
    if document.get("enable") is False:
        forgiven = {fault.path[0] for fault in faults if fault.path} - COMMON
        values = {name: value for name, value in values.items() if name not in forgiven}
        faults = tuple(fault for fault in faults if not fault.path or fault.path[0] not in forgiven)
    return values, faults, tuple(_explain_swallowed(fault) for fault in top.ignored)


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
