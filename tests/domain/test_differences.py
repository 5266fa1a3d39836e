"""What is shown of two sites that differ: every key, as the files have it, and no secret. [SEC-1]"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from penstock.domain.site import differences, parse
from penstock.domain.site.site import Maker, NamedThing, Site
from tests import whole_site

BASE = '[factories.f]\ndriver = "d"\n[targets.linux]\nfactory = "f"\n'


def site(text: str) -> Site:
    found = parse.parse(text, "site.toml")
    assert isinstance(found, Site), found
    return found


def compare(before: str, after: str) -> list[str]:
    found = differences.compare(site(before), site(after), tomllib.loads(before), tomllib.loads(after))
    return [str(each) for each in found]


def stated(value: Any, said: Mapping[str, Any]) -> Iterator[tuple[type, set[str]]]:
    """The dataclasses of a site, each with the keys that its table has."""
    if isinstance(value, Mapping):
        for name, entry in value.items():
            yield from stated(entry, said.get(name, {}))
    elif is_dataclass(value):
        beside = ("settings", "metadata") if isinstance(value, Maker | NamedThing) else ()
        yield type(value), {*said, "name", *beside}
        for each in fields(value):
            yield from stated(getattr(value, each.name), said.get(each.name, {}))


def test_the_whole_site_has_every_key_there_is() -> None:
    """Whoever adds a key adds it to the whole site, and so to the next test."""
    seen: dict[type, set[str]] = {}
    for kind, keys in stated(site(whole_site.FULL), whole_site.document()):
        seen.setdefault(kind, set()).update(keys)
    for kind, keys in seen.items():
        assert {differences.KEYS.get((kind, each.name), each.name) for each in fields(kind)} <= keys, kind


@pytest.mark.parametrize(("path", "value"), whole_site.keys())
def test_every_key_that_changes_is_named(path: tuple[str, ...], value: Any) -> None:
    after = whole_site.changed(path, value)
    named = [line.lstrip("+- ").partition(": ")[0] for line in compare(whole_site.FULL, after)]
    assert named == [".".join(path)]


def test_the_same_site_has_no_differences_however_it_is_written() -> None:
    assert compare(whole_site.FULL, whole_site.FULL) == []
    assert compare(f'{BASE}[limits]\nqueue = "7d"\n', BASE) == []
    assert compare(f'{BASE}[limits]\nboot = "5m"\n', f"{BASE}[limits]\nboot = 300\n") == []


def test_values_are_shown_as_the_files_have_them_and_defaults_in_the_same_words() -> None:
    assert compare(BASE, f'{BASE}[limits]\nqueue = "2d"\n') == ['limits.queue: "7 days" (default) -> "2d"']
    assert compare(f"{BASE}[limits]\nqueue = 60\n", BASE) == ["limits.queue: 60 -> 604800 (default)"]
    assert compare(f"{BASE}limit = 4\n", f"{BASE}limit = 2\n") == ["targets.linux.limit: 4 -> 2"]
    warm = f"{BASE}warm = {{ max = 1 }}\n"
    assert compare(warm, warm.replace(" }", ', serves = "site" }')) == [
        'targets.linux.warm.serves: "owner" (default) -> "site"'
    ]
    assert compare(f"{BASE}sudo = false\n", BASE) == ["targets.linux.sudo: false -> true (default)"]


def test_prices_are_shown_as_amounts() -> None:
    assert compare(f"{BASE}[prices]\n", f"{BASE}[prices]\nstored = 0.02\n") == [
        "prices.stored: 0.023 (default) -> 0.02"
    ]
    assert compare(f"{BASE}[prices]\n", f"{BASE}price = 0.5\n[prices]\n") == ["+ targets.linux.price: 0.5"]


def test_tables_that_are_added_and_removed_are_named_as_a_whole() -> None:
    new = BASE.replace("[targets.linux]", '[targets."a.b"]')
    assert compare(BASE, new) == ['+ targets."a.b"', "- targets.linux"]
    assert compare(BASE, f"{BASE}[shares]\n") == ["+ shares"]
    assert compare(f"{BASE}warm = {{ max = 1 }}\n", BASE) == ["- targets.linux.warm"]
    assert compare(f'{BASE}privilege = "a.b"\n', BASE) == ['- targets.linux.privilege: "a.b"']


def test_what_follows_from_another_key_is_told_with_it() -> None:
    was, now = (f"{BASE}limit = 4\nwarm = {{ min = {least} }}\n" for least in (2, 3))
    assert compare(was, now) == [
        "targets.linux.warm.min: 2 -> 3", "targets.linux.warm.max: 2 (default) -> 3 (default)",
    ]  # fmt: skip


def named(*names: str) -> str:
    return f'[wells.w]\ndriver = "d"\n[resources.r]\nwell = "w"\nnames = {list(names)}\n'


def test_lists_tell_what_they_lost_and_got() -> None:
    assert compare(named("a", "b"), named("c", "a")) == ['- resources.r.names: "b"', '+ resources.r.names: "c"']
    assert compare(named("a", "b"), named("b", "a")) == ['resources.r.names: ["a", "b"] -> ["b", "a"]']
    numbered = named("a").replace("names = ['a']", "limit = 3")
    assert compare(numbered, named("a")) == [
        "resources.r.limit: 3 -> 1 (default)", '+ resources.r.names: ["a"]',
    ]  # fmt: skip


def test_of_long_lists_the_first_are_named_and_the_others_counted() -> None:
    many = compare(named("a"), named("a", *(f"n{at}" for at in range(differences.SHOWN_ENTRIES + 2))))
    assert len(many) == differences.SHOWN_ENTRIES + 1
    assert many[-1] == "+ resources.r.names: 2 more"
    exact = compare(named("a"), named("a", *(f"n{at}" for at in range(differences.SHOWN_ENTRIES))))
    assert len(exact) == differences.SHOWN_ENTRIES


def test_of_scripts_the_length_is_shown() -> None:
    was, now = (f'{BASE}canary = {{ every = "1h", script = "{word}\\ntrue" }}\n' for word in ("true", "pwd!"))
    assert compare(was, now) == [
        "targets.linux.canary.script: a text of 9 characters -> a text of 9 characters, changed"
    ]
    was, now = (f'{BASE}canary = {{ every = "1h", script = "{"x" * count}" }}\n' for count in (80, 81))
    assert compare(was, now) == [f'targets.linux.canary.script: "{"x" * 80}" -> a text of 81 characters']


SECRET = "hunter2"


@pytest.mark.parametrize(
    "setting",
    [
        f'password = "{SECRET}"', f'api_key = "{SECRET}"', f'create = {{ token = "{SECRET}" }}', f"pin = {len(SECRET)}",
        f'user_data = "{SECRET}"', f'url = "https://ada:{SECRET}@db.example"', f'args = ["--user", "a {SECRET}"]',
        f'start = """\n{SECRET}\n"""', f'options = {{ a = {{ credentials = ["{SECRET}"] }} }}',
    ],
)  # fmt: skip
def test_what_may_be_a_secret_of_a_driver_is_not_shown(setting: str) -> None:
    was, other = (BASE.replace('"d"', f'"d"\n{text}') for text in (setting, setting.replace(SECRET, f"{SECRET}3")))
    other = other.replace(f"pin = {len(SECRET)}", "pin = 70")
    for before, after in ((BASE, was), (was, BASE), (was, other)):
        lines = "".join(compare(before, after))
        assert "(not shown)" in lines
        assert SECRET not in lines
        assert str(len(SECRET)) not in lines


def test_a_secret_of_a_resource_types_settings_is_not_shown() -> None:
    was = f'{named("a")}settings = {{ password = "{SECRET}", zone = "a" }}\n'
    now = was.replace(SECRET, "other").replace('"a" }', '"b" }')
    assert compare(was, now) == [
        "resources.r.settings.password: (not shown) -> (not shown), changed", 'resources.r.settings.zone: "a" -> "b"',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ('image = "ami-1"', 'image = "ami-2"'), ("cores = 4", "cores = 5"), ('zones = ["a"]', 'zones = ["a", "b"]'),
        ('password = "secretsmanager:penstock/a"', 'password = "ssm:/penstock/b#c"'),
    ],
)  # fmt: skip
def test_other_settings_and_references_to_secrets_are_shown(was: str, now: str) -> None:
    before, after = (BASE.replace('"d"', f'"d"\n{text}') for text in (was, now))
    key, _, value = now.partition(" = ")
    assert compare(BASE, before) == [f"+ factories.f.{key}: {was.partition(' = ')[2]}"]
    assert compare(before, after) == [f"factories.f.{key}: {was.partition(' = ')[2]} -> {value}"]


def test_a_table_of_settings_is_shown_if_nothing_in_it_may_be_a_secret() -> None:
    for inner, shown in (('{ zone = "a" }', '{"zone": "a"}'), ('{ zone = "a", password = "b" }', "(not shown)")):
        assert compare(BASE, BASE.replace('"d"', f'"d"\nmore = {inner}')) == [f"+ factories.f.more: {shown}"]
