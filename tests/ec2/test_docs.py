"""docs/operators/ec2.md says what is so."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from penstock.domain.site import parse
from penstock.domain.site.site import Site
from penstock.drivers import Registry
from penstock.drivers.factories.ec2.errors import TABLE
from penstock.drivers.factories.ec2.settings import Settings

TEXT = (Path(__file__).parents[2] / "docs/operators/ec2.md").read_text()


def section(title: str) -> str:
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_the_example_is_a_site() -> None:
    site = parse.parse(TEXT.partition("```toml\n")[2].partition("```")[0], "docs/operators/ec2.md")
    assert isinstance(site, Site), site
    (maker,) = site.factories.values()
    assert Registry({}).complaints("factory", maker.driver, maker.settings) == []


def test_every_setting_is_in_the_table_and_no_other() -> None:
    told = re.findall(r"^\| `(\w+)` \|", section("Settings"), re.M)
    assert sorted(told) == sorted(field.name for field in fields(Settings))


def test_defaults_are_as_told() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", section("Settings"), re.M))
    given = Settings("eu-west-1", ())
    assert told["market"] == f'`"{given.market}"`'
    assert told["python"] == f'`"{given.python}"`'
    assert told["linger"] == str(given.linger)


def test_every_code_it_names_is_in_the_table() -> None:
    named = re.findall(r"`([A-Z]\w+?)(?:\.\*)?`", section("Errors").partition("Where several")[0])
    assert set(named) - set(TABLE) == {"UnknownDriverErrors"}
