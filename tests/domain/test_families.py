"""The targets of a site that stand for several: what their tables may say."""

from __future__ import annotations

import pytest

from penstock.domain.site import parse
from penstock.domain.site.site import Site

SMALL = '[targets.small]\nfactory = "here"\nmachine = { cpus = 2, memory = "4GiB" }\n'
SITE = f'[factories.here]\ndriver = "process"\n{SMALL}'
FAMILY = '[targets.any]\nmachines = ["small"]\n'


def test_a_family_names_targets_that_say_what_they_have() -> None:
    found = parse.parse(f'{SITE}{FAMILY}privilege = "target.any"\nprice_band = 2\n', "site.toml")
    assert isinstance(found, Site), found
    family, small = found.targets["any"], found.targets["small"]
    assert (family.machines, family.price_band, family.privilege) == (("small",), 2.0, "target.any")
    assert [family.has_workers, small.has_workers] == [False, True]
    assert small.machine
    assert small.machine.said == {"cpus": 2, "memory": "4GiB"}


@pytest.mark.parametrize(
    ("text", "path", "message", "hint"),
    [
        ("machines = []", "machines", "names no target", "linux-small"),
        ("machines = 'small'", "machines", "wants a list of targets", '["small"]'),
        ("machines = ['small', 'small']", "machines[1]", "`small` is listed twice", ""),
        ("machines = ['']", "machines[0]", "is empty", ""),
        ("machines = ['smal']", "machines[0]", "there is no target `smal`", "did you mean `small`?"),
        ("machines = ['alias']", "machines[0]", "`alias` is an alias, and has no workers of its own", "`factory`"),
        ("machines = ['any']", "machines[0]", "`any` is a family, and has no workers of its own", "`factory`"),
        ("machines = ['old']", "machines[0]", "[targets.old] does not say what its machines have", "cpus = 4"),
        ("machines = ['small', 'priced']", "machines", "and these have none: small", "`price`"),
        (f"machines = {['small'] * 21}", "machines[20]", "it may have at most 20", ""),
        ("machines = ['small']\nlimit = 3", "limit", "a family has no `limit` of its own", "take `limit` out"),
        ("machines = ['small']\nfactory = 'here'", "factory", "a family has no `factory` of its own", ""),
        ("machines = ['small']\nprice_band = 0.9", "price_band", "must be from 1 to 100", "the cheapest only"),
        ("machines = ['small']\nprice_band = 101", "price_band", "must be from 1 to 100", ""),
        ("machines = ['small']\nprice_band = true", "price_band", "wants a number, not true or false", "1.5"),
        ("machines = ['small']\nprice_band = '2'", "price_band", "wants a number, not a string", "1.5"),
        ("factory = 'here'\nprice_band = 2", "price_band", "only a target with `machines` has a `price_band`", ""),
        ("redirect = 'small'\nmachines = ['small']", "machines", "a redirect has no `machines` of its own", ""),
        ("redirect = 'small'\nmachine = { cpus = 2 }", "machine", "a redirect has no `machine` of its own", ""),
        ("factory = 'here'\nmachine = { cpus = 0 }", "machine.cpus", "must be from 1 to 4096", ""),
    ],
)
def test_a_wrong_family_is_told(text: str, path: str, message: str, hint: str) -> None:
    others = (
        '[targets.old]\nfactory = "here"\n[targets.alias]\nredirect = "small"\n[prices]\ncurrency = "EUR"\n'
        '[targets.priced]\nfactory = "here"\nprice = 1\nmachine = { cpus = 2 }\n'
    )
    found = parse.parse(f"{SITE}{others}[targets.any]\n{text}\n", "site.toml")
    assert isinstance(found, tuple)
    told = [each for each in found if each.where == f"targets.any.{path}"]
    assert message in told[0].message, found
    assert hint in (told[0].hint or "")


def test_the_longest_family_and_the_widest_band() -> None:
    many = "".join(SMALL.replace("small", f"t{number}") for number in range(20))
    names = [f"t{number}" for number in range(20)]
    found = parse.parse(f"{SITE}{many}[targets.any]\nmachines = {names}\nprice_band = 100\n", "site.toml")
    assert isinstance(found, Site), found
    lowest = parse.parse(f"{SITE}{FAMILY}price_band = 1\n", "site.toml")
    assert isinstance(lowest, Site)
