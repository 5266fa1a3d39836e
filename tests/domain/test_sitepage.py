"""docs/operators/site.md has every key of a site file, with its default."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from penstock.domain.artifacts.retention import Spans
from penstock.domain.jobfile import parse_duration
from penstock.domain.pools.pools import Sharing, Warm
from penstock.domain.site import parse
from penstock.domain.site.site import (
    Budgets,
    CanaryScript,
    Console,
    Environment,
    GitHubApp,
    Health,
    Identity,
    Limits,
    Prices,
    ResourceType,
    Shares,
    Site,
    Target,
)

PAGE = (Path(__file__).parents[2] / "docs/operators/site.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
RENAMED = {"least": "min", "most": "max"}


def table(heading: str) -> dict[str, str]:
    """The keys of the first table below a heading, and what its third column says."""
    part = PAGE.partition(f"\n{heading}\n")[2]
    rows = part.partition("\n|")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in rows]
    return {cell[1].strip("`"): cell[3] for cell in cells}


def keys(heading: str) -> set[str]:
    """The keys of a table that begins with `key of ...`."""
    part = PAGE.partition(f"| key of `{heading}` |")[2].partition("\n\n")[0]
    return set(re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE))


def names(of: type) -> set[str]:
    """The keys that a dataclass stands for."""
    return {RENAMED.get(each.name, each.name) for each in fields(of)} - {"name"}  # type: ignore[arg-type]


def test_the_examples_are_sites() -> None:
    site = parse.parse(EXAMPLES[0], "site.md")
    assert isinstance(site, Site), site
    asked = parse.parse(EXAMPLES[5], "site.md")
    assert isinstance(asked, Site), asked
    both = parse.parse(EXAMPLES[0] + EXAMPLES[4], "site.md")
    assert isinstance(both, Site), both
    assert len(both.canaries()) == 2
    family = parse.parse(EXAMPLES[0] + EXAMPLES[1], "site.md")
    assert isinstance(family, Site), family
    assert [each.name for each in family.members(family.targets["linux"])] == ["linux-small", "linux-large"]
    shared = parse.parse(EXAMPLES[2], "site.md")
    assert isinstance(shared, Site), shared
    assert shared.targets["lab"].share == Sharing(16)
    things = parse.parse(EXAMPLES[0] + EXAMPLES[3], "site.md")
    assert isinstance(things, Site), things
    assert things.resources["bench"].names == ("bench-1", "bench-2", "bench-3")
    assert len(EXAMPLES) == 6


def test_every_key_is_in_a_table_and_no_other() -> None:
    assert table("## Targets").keys() == names(Target)
    assert table("## Resource types").keys() == names(ResourceType)
    for heading, of in (
        ("[limits]", Limits), ("[retention]", Spans), ("[identity]", Identity), ("[github]", GitHubApp), ("warm", Warm),
        ("[console]", Console), ("[prices]", Prices), ("[budgets]", Budgets),
        ("[shares]", Shares), ("[environments.NAME]", Environment),
        ("health", Health), ("canary", CanaryScript),
    ):  # fmt: skip
        assert keys(heading) == names(of), heading


@pytest.mark.parametrize(("heading", "of"), [("## Limits", Limits), ("## Retention", Spans)])
def test_defaults_are_those_of_the_code(heading: str, of: type) -> None:
    for key, said in table(heading).items():
        (field,) = [each for each in fields(of) if each.name == key]  # type: ignore[arg-type]
        assert field.default is not MISSING
        written = said.strip("`")
        value = written.strip('"') if written.startswith('"') else 0 if written == "no limit" else int(written)
        assert parse_duration(value) == field.default or value == field.default, key
