"""docs/operators/fargate.md says what is so."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from penstock.domain.site import parse
from penstock.domain.site.site import Site
from penstock.drivers import Registry
from penstock.drivers.factories.fargate.errors import TABLE
from penstock.drivers.factories.fargate.settings import SIZES, Settings

TEXT = (Path(__file__).parents[2] / "docs/operators/fargate.md").read_text()


def section(title: str) -> str:
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_example_is_a_site() -> None:
    example = TEXT.partition("```toml\n")[2].partition("```")[0].replace("sha256:…", f"sha256:{'ab' * 32}")
    site = parse.parse(example, "docs/operators/fargate.md")
    assert isinstance(site, Site), site
    (maker,) = site.factories.values()
    assert Registry({}).complaints("factory", maker.driver, maker.settings) == []


def test_every_setting_is_in_the_table_and_no_other() -> None:
    told = [
        name
        for names in re.findall(r"^\| (`[\w`, ]+`) \|", section("Settings"), re.M)
        for name in re.findall(r"\w+", names)
    ]
    assert sorted(told) == sorted(field.name for field in fields(Settings))


def test_defaults_are_as_told() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", section("Settings"), re.M))
    given = Settings("eu-west-1", "jobs", "", ())
    assert told["market"] == f'`"{given.market}"`'
    assert told["arch"] == f'`"{given.arch}"`'
    assert told["python"] == f'`"{given.python}"`'
    assert (told["cpu"], told["memory"]) == (f"{given.cpu:g}", str(given.memory))
    *most, last = (f"{each:g}" for each in SIZES)
    assert f"vCPUs: {', '.join(most)} or {last}" in section("Settings")


def test_every_code_it_names_is_in_the_table() -> None:
    named = re.findall(r"`([A-Z][a-z]\w+)`", section("Errors").partition("The complete")[0])
    assert set(named) - set(TABLE) == {"UnknownDriverErrors"}
