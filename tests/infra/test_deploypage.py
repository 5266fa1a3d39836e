"""docs/operators/README.md has every option of a deployment, and its first site is good."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from infra.settings import Settings
from penstock.domain.site import parse
from penstock.domain.site.site import Site
from penstock.drivers import Registry

PAGE = (Path(__file__).parents[2] / "docs/operators/README.md").read_text(encoding="utf-8")


def test_every_option_of_a_deployment_is_in_the_table_and_no_other() -> None:
    part = PAGE.partition("## Options of a deployment\n")[2]
    named = [name for row in re.findall(r"^\| (`.*?) \|", part, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(field.name for field in fields(Settings))


def test_the_first_site_is_good() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    site = parse.parse(example, "site.toml")
    assert isinstance(site, Site), site
    for kind, makers in (("factory", site.factories), ("well", site.wells)):
        for maker in makers.values():
            assert Registry({}).complaints(kind, maker.driver, maker.settings) == []
