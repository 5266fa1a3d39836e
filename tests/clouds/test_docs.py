"""docs/operators/libcloud.md says what is so."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from penstock.domain.site import parse
from penstock.domain.site.site import Site
from penstock.drivers import Registry
from penstock.drivers.factories.libcloud.providers import PROVIDERS
from penstock.drivers.factories.libcloud.settings import MOST_ALTERNATIVES, Settings

TEXT = (Path(__file__).parents[2] / "docs/operators/libcloud.md").read_text()
EXAMPLES = re.findall(r"```toml\n(.*?)```", TEXT, re.S)


@pytest.mark.parametrize("example", EXAMPLES, ids=["openstack", "azure", "google"])
def test_every_example_is_a_site(example: str) -> None:
    site = parse.parse(example, "docs/operators/libcloud.md")
    assert isinstance(site, Site), site
    (maker,) = site.factories.values()
    assert Registry({}).complaints("factory", maker.driver, maker.settings) == []


def test_every_setting_is_in_the_table_and_no_other() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", TEXT, re.M))
    assert sorted(told) == sorted(field.name for field in fields(Settings))
    given = Settings("x", ())
    assert told["prefix"] == f'`"{given.prefix}"`'
    assert told["python"] == f'`"{given.python}"`'
    assert (told["linger"], told["lag"]) == (str(given.linger), str(given.lag))
    assert all(f"`{name}`" in told["boot_argument"] for name in PROVIDERS)
    tagging = [name for name, each in sorted(PROVIDERS.items()) if each.tags]
    assert tagging == re.findall(r"`(\w+)`", told["tags_argument"])
    assert f"there may be {MOST_ALTERNATIVES}" in TEXT
