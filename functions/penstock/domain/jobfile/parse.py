"""From the text of a job file to a `JobFile`, or to everything that is wrong with it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.domain.jobfile.caches import CacheAsk
from penstock.domain.jobfile.header import Header, read_header
from penstock.domain.jobfile.keys import check_document
from penstock.domain.jobfile.matrix import Matrix
from penstock.domain.jobfile.posts import Post
from penstock.domain.jobfile.relations import Dependency, Publish
from penstock.domain.jobfile.resources import ResourceAsk
from penstock.domain.jobfile.rules import OutputRule
from penstock.domain.jobfile.source import decode, flaws
from penstock.kernel.errors import Problem, Problems
from penstock.toml.checks import Fault, Path
from penstock.toml.document import AT, TOML_HINTS, Spot, locate, nearest, tokenise, too_deep


@dataclass(frozen=True)
class JobFile:
    """What a job file asks for. `script` is the whole text, header and all; `timeout` and `hold_on_failure` are
    in seconds.

    A file with no `#:` line is a plain script: it has no name. `name_spot` is the name's line and column.
    """

    path: str
    script: str
    name: str | None = None
    target: str = "default"
    enable: bool = True
    skip_clone: bool = False
    output_rules: tuple[OutputRule, ...] = ()
    resources: tuple[ResourceAsk, ...] = ()
    cache: tuple[CacheAsk, ...] = ()
    timeout: int | None = None
    priority: int = 0
    retries: int | None = None
    retry_failed: bool = False
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
    values, faults = check_document(document)
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
    return {**values, "retry_failed": retry_failed, "name_spot": name_spot}


def _placed(ask: ResourceAsk, spots: dict[Path, Spot], header: Header) -> ResourceAsk:
    """A resource with where its options stand, if it has some."""
    spot = spots.get(("resources", ask.name, "options"))
    return replace(ask, spot=header.spot(spot.key)) if spot else ask


def _located(found: Dependency, spots: dict[Path, Spot], header: Header) -> Dependency:
    """A dependency with where the name of its job stands."""
    return replace(found, spot=header.spot(spots["dependencies", found.name, "job"].value))


def _toml_problem(error: ValueError, header: Header, path: str) -> Problem:
    """What the TOML parser said, at the file's line and column. Its errors are all kinds of `ValueError`."""
    said = str(error)
    at = AT.search(said)
    if at and at[1]:
        line, column = header.place(int(at[1]), int(at[2]))
    else:
        line, column = header.spot(len(header.toml))
    hint = next((hint for start, hint in TOML_HINTS.items() if said.startswith(start)), None)
    return Problem(path, line, column, f"not TOML: {AT.sub('', said)}", hint)


def _problem(fault: Fault, spots: dict[Path, Spot], header: Header, path: str) -> Problem:
    spot = nearest(spots, fault.path)
    line, column = header.spot(spot.key if fault.on_key else spot.value)
    return Problem(path, line, column, fault.message, fault.hint)
