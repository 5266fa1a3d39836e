"""docs/operators/wells say what is so."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from penstock.domain.site import parse
from penstock.domain.site.site import Site
from penstock.drivers import Registry
from penstock.drivers.wells.aws.calls import TABLE
from penstock.drivers.wells.aws.denials import SLACK, Denial
from penstock.drivers.wells.aws.settings import MANAGED, MOST, SETTLE, BucketSettings, RoleSettings
from tests.aws.helpers import NOW, UNIT

DOCS = Path(__file__).parents[2] / "docs/operators"
TEXTS = {name: (DOCS / "wells" / f"{name}.md").read_text() for name in ("sts", "s3")}


def section(name: str, title: str) -> str:
    return TEXTS[name].partition(f"## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", TEXTS)
def test_the_example_is_a_site(name: str) -> None:
    site = parse.parse(TEXTS[name].partition("```toml\n")[2].partition("```")[0], f"docs/operators/wells/{name}.md")
    assert isinstance(site, Site), site
    (maker,) = site.wells.values()
    assert maker.driver == name
    assert Registry({}).complaints("well", maker.driver, maker.settings) == []


def test_every_setting_is_in_the_tables_and_no_other() -> None:
    told = {name: set(re.findall(r"^\| `(\w+)` \|", section(name, "Settings"), re.M)) for name in TEXTS}
    lending = {field.name for field in fields(RoleSettings)}
    assert told["sts"] == lending
    assert told["s3"] == {field.name for field in fields(BucketSettings)}
    also = re.findall(r"`(\w+)`", section("s3", "Settings").partition("\n`role`")[2].partition(" are as in")[0])
    assert {"role", *also} == lending - {"policy", "policies"}


def test_figures_are_as_told() -> None:
    text = " ".join(TEXTS["sts"].split())
    size = 196
    for minutes, an_hour in ((15, 150), (60, 46)):
        assert int(50 * 60 / (minutes + SLACK.seconds / 60)) == an_hour
        assert f"{an_hour}" in text
    assert f"a denial has {size}" in text
    assert len(str(Denial(UNIT, NOW, NOW).document).replace(" ", "")) == size
    assert f"at most {MANAGED} managed policies" in text
    assert f"| {SETTLE} |" in section("s3", "Settings")
    assert MOST == 3600


def test_every_code_it_names_is_in_the_table() -> None:
    named = set(re.findall(r"`([A-Z]\w+)`", section("sts", "Errors")))
    assert named - set(TABLE) == {"UnknownDriverErrors"}
