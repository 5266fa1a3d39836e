"""One row per way to get a site wrong: where it is reported, what is said, what is advised."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.artifacts.retention import Spans
from penstock.domain.money import Micros
from penstock.domain.pools.pools import Serves
from penstock.domain.site.keys import MAX_SLOTS
from penstock.domain.site.parse import MAX_FAULTS, parse
from penstock.domain.site.site import (
    MAX_REDIRECTS,
    Budgets,
    Environment,
    Health,
    Limits,
    Maker,
    Period,
    Prices,
    ResourceType,
    Shares,
    Site,
    Target,
)
from penstock.kernel.errors import Fault
from penstock.toml.document import SITE_BYTES

GOOD = """\
[factories.here]
driver = "process"
[wells.benches]
driver = "lock"
[targets.ubuntu]
factory = "here"
"""
"""A site that needs six lines; what a row adds begins on line 7."""


def faults(text: str) -> list[Fault]:
    found = parse(text, "site.toml")
    assert isinstance(found, tuple), found
    return list(found)


def only(text: str) -> Fault:
    found = faults(text)
    assert len(found) == 1, found
    return found[0]


DOCUMENT = [
    ("[target.x]", 1, 2, "target", "unknown key `target`", "did you mean `targets`?"),
    ("[quotas.vcpus]\namount = -1", 2, 10, "quotas.vcpus.amount", "must be from 0 to", ""),
    ("factories = 3", 1, 13, "factories", "wants tables like [factories.NAME] with driver", ""),
    ("targets.ubuntu = 3", 1, 18, "targets.ubuntu", "wants a table, not a whole number", 'factory = "here"'),
    ("[factories.'a b']\ndriver = 'x'", 1, 12, "factories.a b", "`a b` cannot be a name", "letters, digits"),
    ("factories.here = 'process'", 1, 18, "factories.here", "wants a table, not a string", 'driver = "process"'),
    ("[wells.w]\ndrive = 'lock'", 1, 8, "wells.w", "`wells.w` has no `driver`", "like driver"),
    ("[wells.w]\ndriver = ''", 2, 10, "wells.w.driver", "`wells.w.driver` is empty", ""),
    ("[wells.w]\ndriver = 'x'\nat = 2026-01-01", 3, 6, "wells.w.at", "wants a string, number", ""),
    ("[wells.w]\ndriver = 'x'\nrate = true", 3, 8, "wells.w.rate", "wants a number of calls per second", "rate = 2"),
    ("[wells.w]\ndriver = 'x'\nrate = '2'", 3, 8, "wells.w.rate", "wants a number of calls per second", "rate = 2"),
    ("[wells.w]\ndriver = 'x'\nrate = 0", 3, 8, "wells.w.rate", "must be from 0.01 to 1000", ""),
    ("[wells.w]\ndriver = 'x'\nrate = inf", 3, 8, "wells.w.rate", "must be from 0.01 to 1000", ""),
    ("[wells.w]\ndriver = 'x'\nrate = nan", 3, 8, "wells.w.rate", "must be from 0.01 to 1000", ""),
]
IDENTITY = [
    ("[identity]", 7, 2, "identity", "audiences", "sts.amazonaws.com"),
    ("[github]\napp = 1\nrepositories = []\nclient_id = 'a b'", 10, 13, "github.client_id", "a client ID", "Iv23"),
    ("[console]\npublic = '*'", 8, 10, "console.public", "wants a list of repositories", '["*"]'),
    ("[console]\npublic = ['ada']", 8, 11, "console.public[0]", "`ada` is not a repository", "oxide:hubris"),
    ("[console]\npublic = ['*', 'a/b']", 8, 16, "console.public[1]", "`a/b` is not a repository", '"*" for all'),
    ("[console]\npublic = ['**']", 8, 11, "console.public[0]", "`**` is not a repository", ""),
    ("[console]\npublic = [1]", 8, 11, "console.public[0]", "wants a string", ""),
    ("[identity]\naudiences = 'x'", 8, 13, "identity.audiences", "wants a list of audiences", ""),
    ("[identity]\naudiences = ['']", 8, 14, "identity.audiences[0]", "is empty", ""),
    ("[identity]\naudiences = ['a', 'b c']", 8, 19, "identity.audiences[1]", "`b c` cannot be an audience", "blanks"),
    ("[identity]\naudiences = []\nprivilege = 'A'", 9, 13, "identity.privilege", "`A` cannot be a privilege", "lower"),
    (
        "[identity]\naudiences = []\naudience = []",
        9,
        1,
        "identity.audience",
        "unknown key `audience`",
        "did you mean `audiences`?",
    ),
]
SHARES = [
    ("half_life = '30s'", 8, 13, "shares.half_life", "must be from 1 minute to 90 days", ""),
    ("half_life = 'soon'", 8, 13, "shares.half_life", "wanted a duration", ""),
    ("default = 0", 8, 11, "shares.default", "must be from 1 to 10000", ""),
    ("weights = 3", 8, 11, "shares.weights", "wants a table like { ada = 2", ""),
    ("weights = { ada = 10_001 }", 8, 19, "shares.weights.ada", "must be from 1 to 10000", ""),
    ("weights = { 'A B' = 1 }", 8, 13, "shares.weights.A B", "`A B` is no user and no repository", "oxide:hubris"),
    ("weight = 3", 8, 1, "shares.weight", "unknown key `weight`", "did you mean `weights`?"),
]
PRICES = [
    ("currency = 'euro'", 8, 12, "prices.currency", "`euro` is not a currency", "three capital letters"),
    ("currency = 'EUR'", 7, 2, "prices", "`prices` has no `dollar`", "what a US dollar costs in EUR: dollar = 0.92"),
    ("dollar = 0", 8, 10, "prices.dollar", "`prices.dollar` must be more than 0", ""),
    ("dollar = -1", 8, 10, "prices.dollar", "must be from 0 to 1000000000, with six decimals at most", ""),
    ("stored = '0.02'", 8, 10, "prices.stored", "wants a price, not a string", "a number like 0.0816"),
    ("stored = true", 8, 10, "prices.stored", "wants a price, not true or false", "a number like 0.0816"),
    ("sent = 0.00000001", 8, 8, "prices.sent", "must be from 0 to 1000000000, with six decimals at most", ""),
    ("sent = nan", 8, 8, "prices.sent", "must be from 0 to 1000000000", ""),
    ("store = 1", 8, 1, "prices.store", "unknown key `store`", "did you mean `stored`?"),
]
BUDGETS = [
    ("period = 'week'", 9, 10, "budgets.period", "`budgets.period` cannot be 'week'", 'it is "day" or "month"'),
    ("period = 30", 9, 10, "budgets.period", 'wants "day" or "month", not a whole number', ""),
    ("warn = 0", 9, 8, "budgets.warn", "must be from 1 to 100", ""),
    ("default = -1", 9, 11, "budgets.default", "must be from 0 to 1000000000", ""),
    ("owners = 3", 9, 10, "budgets.owners", "wants a table like { ada = 50", ""),
    ("owners = { ada = 'much' }", 9, 18, "budgets.owners.ada", "wants a price, not a string", ""),
    ("owners = { 'A B' = 1 }", 9, 12, "budgets.owners.A B", "`A B` is no user and no repository", "oxide:hubris"),
    ("owner = 3", 9, 1, "budgets.owner", "unknown key `owner`", "did you mean `owners`?"),
]
PRICED = [
    ("[targets.t]\nfactory = 'here'\nprice = 1", "targets.t.price", "needs the site's currency", "[prices]"),
    ("[resources.r]\nwell = 'benches'\nprice = 0", "resources.r.price", "needs the site's currency", "[prices]"),
    ("[targets.r]\nredirect = 'ubuntu'\nprice = 1", "targets.r.price", "a redirect has no `price`", "take"),
]
OWNERS, REVIEWERS = "owners = ['ada']", "reviewers = ['bert']"
ENVIRONMENTS = [
    (REVIEWERS, 7, 15, "environments.p", "has no `owners`", "oxide:hubris"),
    (OWNERS, 7, 15, "environments.p", "neither `reviewers` nor `logins`: nobody could approve", "reviewers"),
    ("owners = ['A b']", 8, 11, "environments.p.owners[0]", "`A b` is not a user or a repository", "oxide:hubris"),
    ("reviewers = ['a:b']\n" + OWNERS, 8, 14, "environments.p.reviewers[0]", "`a:b` is not a user", "`logins`"),
    ("reviewers = ['A b']\n" + OWNERS, 8, 14, "environments.p.reviewers[0]", "`A b` is not a user", "`logins`"),
    ("logins = ['a b']\n" + OWNERS, 8, 11, "environments.p.logins[0]", "`a b` is not a login", "ada"),
    ("refs = ['main']\n" + OWNERS, 8, 9, "environments.p.refs[0]", "`main` is not a ref", "refs/heads/main"),
    ("privileges = ['A']\n" + OWNERS, 8, 15, "environments.p.privileges[0]", "`A` cannot be a privilege", "lower"),
    ("self_review = 3\n" + OWNERS, 8, 15, "environments.p.self_review", "wants true or false", ""),
]
TARGETS = [
    ("[targets.x]", 7, 10, "targets.x", "has no `factory`, `redirect` or `machines`", 'factory = "here"'),
    ("[targets.x]\nlimt = 3", 8, 1, "targets.x.limt", "unknown key `limt`", "did you mean `limit`?"),
    ("[targets.x]\nfactory = 'her'", 8, 11, "targets.x.factory", "there is no factory `her`", "did you mean `here`?"),
    ("[targets.x]\nfactory = 'zzz'", 8, 11, "targets.x.factory", "there is no factory `zzz`", "known here: here"),
    ("[targets.x]\nfactory = ''", 8, 11, "targets.x.factory", "is empty", ""),
    ("[targets.x]\nredirect = 'ubunt'", 8, 12, "targets.x.redirect", "there is no target `ubunt`", "`ubuntu`?"),
    ("[targets.x]\nredirect = 'x'", 8, 12, "targets.x.redirect", "circle: x -> x", "`factory`"),
    (
        "[targets.x]\nredirect = 'y'\n[targets.y]\nredirect = 'z'\n[targets.z]\nredirect = 'y'",
        10,
        12,
        "targets.y.redirect",
        "the redirects go in a circle: y -> z -> y",
        "`factory`",
    ),
    (
        "[targets.x]\nredirect = 'ubuntu'\nlimit = 3",
        9,
        1,
        "targets.x.limit",
        "a redirect has no `limit`",
        "take `limit` out",
    ),
    (
        "[targets.x]\nredirect = 'ubuntu'\nfactory = 'here'",
        9,
        1,
        "targets.x.factory",
        "a redirect has no `factory`",
        "take `factory` out",
    ),
    ("limit = -1", 7, 9, "targets.ubuntu.limit", "must be from 0 to 10000", ""),
    ("limit = 10001", 7, 9, "targets.ubuntu.limit", "must be from 0 to 10000", ""),
    ("limit = '4'", 7, 9, "targets.ubuntu.limit", "wants a whole number", "without quotes"),
    ("privilege = 'Lab'", 7, 13, "targets.ubuntu.privilege", "`Lab` cannot be a privilege", "like target.lab"),
    ("privilege = 3", 7, 13, "targets.ubuntu.privilege", "wants a string", "double quotes"),
    ("uses = { vcpus = 0 }\n[quotas.vcpus]\namount = 1", 7, 18, "targets.ubuntu.uses.vcpus", "must be from 1 to", ""),
    (
        "uses = { vcpu = 1 }\n[quotas.vcpus]\namount = 1",
        7,
        10,
        "targets.ubuntu.uses.vcpu",
        "nothing `vcpu`",
        "`vcpus`?",
    ),
    ("uses = { vcpus = 1 }", 7, 10, "targets.ubuntu.uses.vcpus", "nothing `vcpus` to use", "[quotas.NAME]"),
    (
        "uses = { q = 1 }\n[quotas.q]\namount = 1\n[resources.x]\nwell = 'benches'\nuses = { q = 1 }",
        7,
        10,
        "targets.ubuntu.uses.q",
        "`q` is used by a resource type too",
        "two quotas",
    ),
    (
        "[resources.x]\nwell = 'benches'\nuses = { x = 1 }",
        9,
        10,
        "resources.x.uses.x",
        "its own slot anyway",
        "take it out",
    ),
    (
        "[resources.x]\nwell = 'benches'\nlimit = 2\nleases = 2",
        10,
        1,
        "resources.x.leases",
        "only named resources",
        "`names`",
    ),
    (
        "limit = 9\nwarm = { min = 3, max = 2 }",
        8,
        16,
        "targets.ubuntu.warm.min",
        "`min` (3) must be at most `max` (2)",
        "raise `max`",
    ),
    ("warm = { min = 2 }", 7, 16, "targets.ubuntu.warm.min", "at most the number of slots (1)", ""),
    (
        "warm = { serves = 'nobody' }",
        7,
        19,
        "targets.ubuntu.warm.serves",
        "cannot be 'nobody'",
        'it is "owner" or "site"',
    ),
    ("warm = { serves = true }", 7, 19, "targets.ubuntu.warm.serves", 'wants "owner" or "site"', ""),
    ("names = ['Bench']", 7, 10, "targets.ubuntu.names[0]", "`Bench` cannot be the name of a host", "lower-case"),
    ("names = ['']", 7, 10, "targets.ubuntu.names[0]", "is empty", ""),
    ("names = ['7']", 7, 10, "targets.ubuntu.names[0]", "`7` cannot be the name of a host", "not digits only"),
    ("names = ['a', 'a']", 7, 15, "targets.ubuntu.names[1]", "`a` is listed twice", "own name"),
    ("limit = 1\nnames = ['a']", 7, 1, "targets.ubuntu.limit", "named slots are their own limit", "keep either"),
    (
        "names = ['a', 'b']\n[targets.x]\nfactory = 'here'\nnames = ['c', 'b']",
        10,
        15,
        "targets.x.names[1]",
        "`b` serves [targets.ubuntu] already",
        "one target",
    ),
    ("[targets.x]\nredirect = 'ubuntu'\nnames = ['a']", 9, 1, "targets.x.names", "a redirect has no `names`", ""),
    ("[targets.x]\nredirect = 'ubuntu'\nsudo = true", 9, 1, "targets.x.sudo", "a redirect has no `sudo`", ""),
    ("sudo = 'no'", 7, 8, "targets.ubuntu.sudo", "wants true or false", ""),
]
R = f"{GOOD}[resources.r]\nwell = 'benches'\n"
THINGS = [
    ("things = 3", 10, "things", "`resources.r.things` wants tables like [things.bench-3]", ""),
    ("things.a = 3", 12, "things.a", "wants a table, not a whole number", "labels"),
    ("things.'a b' = {}", 16, "things.a b", "`a b` is not a name", "letters"),
    ("things.a.labels = 3", 19, "things.a.labels", "wants a table like", ""),
    ("things.a.labels = { rack = 3 }", 28, "things.a.labels.rack", "wants a string", "double quotes"),
    ("things.a.labels = { 'a b' = 'c' }", 29, "things.a.labels.a b", "is not a label", "letters"),
    ("things.a.labels = { name = 'c' }", 21, "things.a.labels.name", "its name is a label", "take it"),
    ("things.a = { labels = { k = 'v' }, k = 1 }", 36, "things.a.k", "is a label of it", "otherwise"),
    ("things.a.when = 10:00:00", 17, "things.a.when", "wants a string, number", ""),
    ("limit = 2\nthings.a = {}", 1, "limit", "named slots are their own limit", "keep either"),
]
RESOURCES = [
    ("well = 'benches'\nnames = ['a']\nwarm = { min = 2 }", 10, 16, "resources.r.warm.min", "slots (1)", ""),
    ("", 7, 12, "resources.r", "`resources.r` has no `well`", 'well = "benches"'),
    ("well = 'bench'", 8, 8, "resources.r.well", "there is no well `bench`", "did you mean `benches`?"),
    ("well = 'benches'\nname = ['a']", 9, 1, "resources.r.name", "unknown key `name`", "did you mean `names`?"),
    ("well = 'benches'\nnames = 'a'", 9, 9, "resources.r.names", "wants a list of names", '["a"]'),
    ("well = 'benches'\nnames = ['a', 'a']", 9, 15, "resources.r.names[1]", "`a` is listed twice", "own name"),
    ("well = 'benches'\nnames = ['a', 'b c']", 9, 15, "resources.r.names[1]", "`b c` is not a name", "letters"),
    ("well = 'benches'\nnames = ['a', 3]", 9, 15, "resources.r.names[1]", "wants a name", "double quotes"),
    (
        "well = 'benches'\nlimit = 2\nnames = ['a']",
        9,
        1,
        "resources.r.limit",
        "named slots are their own limit",
        "keep either",
    ),
    ("well = 'benches'\npublic = 'host'", 9, 10, "resources.r.public", "wants a list of keys", 'in brackets: ["host"]'),
    ("well = 'benches'\npublic = [7]", 9, 11, "resources.r.public[0]", "wants a string", "put it in double quotes"),
    ("well = 'benches'\nsettings = 3", 9, 12, "resources.r.settings", "wants a table", ""),
    ("well = 'benches'\nsettings.x = nan", 9, 14, "resources.r.settings.x", "wants a finite number", ""),
]
LIMITS = [
    ("quue = 1", 8, 1, "limits.quue", "unknown key `quue`", "did you mean `queue`?"),
    ("queue = 'soon'", 8, 9, "limits.queue", "`limits.queue`: wanted a duration", ""),
    ("queue = '22d'", 8, 9, "limits.queue", "must be from 1 second to 21 days", ""),
    ("grace = 0", 8, 9, "limits.grace", "must be from 1 second to 1 hour", ""),
    ("hold = '8d'", 8, 8, "limits.hold", "must be from 0 to 7 days", ""),
    ("retries = 11", 8, 11, "limits.retries", "must be from 0 to 10", ""),
    ("output_bytes = 0", 8, 16, "limits.output_bytes", "must be from 1 to 671088640000", ""),
    ("heartbeat = '2m'", 8, 13, "limits.heartbeat", "`heartbeat` (120s) must be less than `lease` (120s by", "lost"),
    ("lease = 15", 8, 9, "limits.lease", "`heartbeat` (50s by default) must be less than `lease` (15s)", "fit in"),
    ("timeout = '25h'", 8, 11, "limits.timeout", "(90000s) must be at most `timeout_most` (86400s by", "name none"),
    ("timeout_most = '1h'", 8, 16, "limits.timeout_most", "`timeout` (14400s by default) must be at most", "bounds"),
    ("idle_hold = '5m'", 8, 13, "limits.idle_hold", "`boot` (600s by default) must be at most `idle_hold`", "boots"),
]
RETENTION = [
    ("failled = 1", 8, 1, "retention.failled", "unknown key `failled`", "did you mean `failed`?"),
    ("failed = 'soon'", 8, 10, "retention.failed", "`retention.failed`: wanted a duration", ""),
    ("failed = 0", 8, 10, "retention.failed", "must be from 1 second to 3650 days", ""),
    ("upload = '90m'", 8, 10, "retention.upload", "must be from 2 hours to 7 days", ""),
    ("upload = '8d'", 8, 10, "retention.upload", "must be from 2 hours to 7 days", ""),
]
ROWS = [
    *DOCUMENT,
    *((GOOD + row[0], *row[1:]) for row in IDENTITY),
    ("identity = 3", 1, 12, "identity", "wants a table", "sts.amazonaws.com"),
    *((GOOD + row[0], *row[1:]) for row in TARGETS),
    *((f"{GOOD}[resources.r]\n{row[0]}", *row[1:]) for row in RESOURCES),
    *((f"{R}{text}", 9, column, f"resources.r.{where}", *said) for text, column, where, *said in THINGS),
    *((f"{GOOD}[limits]\n{row[0]}", *row[1:]) for row in LIMITS),
    *((f"{GOOD}[retention]\n{row[0]}", *row[1:]) for row in RETENTION),
    *((f"{GOOD}[shares]\n{row[0]}", *row[1:]) for row in SHARES),
    *((f"{GOOD}[prices]\n{row[0]}", *row[1:]) for row in PRICES),
    *((f"{GOOD}[prices]\n[budgets]\n{row[0]}", *row[1:]) for row in BUDGETS),
    (GOOD + "[budgets]\n", 7, 2, "budgets", "budgets need the site's currency", "add a table [prices]"),
    *((GOOD + row[0], 9, 1, *row[1:]) for row in PRICED),
    *((f"{GOOD}[environments.p]\n{row[0]}", *row[1:]) for row in ENVIRONMENTS),
    (GOOD + "[limits]\nwindow = 1\n", 8, 1, "limits.window", "unknown key `window`", "known here: queue"),
    ("limits = 3", 1, 10, "limits", "`limits` wants a table", "queue"),
]


@pytest.mark.parametrize(("text", "line", "column", "where", "message", "hint"), ROWS)
def test_a_wrong_site(text: str, line: int, column: int, where: str, message: str, hint: str) -> None:
    found = only(text)
    assert (found.file, found.line, found.column, found.where) == ("site.toml", line, column, where), found
    assert message in found.message
    assert hint in (found.hint or "")


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "hint"),
    [
        ("x", 1, 2, "not TOML: Expected '=' after a key", "`key = value` or `[table]`"),
        ("\n[limits]\r\nqueue = soon", 3, 9, "not TOML: Invalid value", "double quotes"),
        ("[limits]\n[limits]", 2, 8, "not TOML: Cannot declare", "the same table is written twice"),
        ("a = [1,", 1, 8, "not TOML: ", ""),
        ("a = " + "9" * 5000, 1, 5005, "not TOML: Exceeds the limit", ""),
        ("a = 1\nb = " + "[" * 500, 2, 37, "this is nested too deeply", "no key needs"),
        ("a = 1 # \ud800", 1, 9, "U+D800 is no character", "UTF-8"),
        ("#" + "é" * (SITE_BYTES // 2), 1, 1, "the site is larger than 256 KiB", "elsewhere"),
    ],
)
def test_what_cannot_be_read_as_toml(text: str, line: int, column: int, message: str, hint: str) -> None:
    found = only(text)
    assert (found.file, found.line, found.column) == ("site.toml", line, column), found
    assert message in found.message
    assert hint in (found.hint or "")


def test_a_whole_site() -> None:
    text = """\
factories.here = { driver = "process", python = "python3" }
wells.benches.driver = "lock"
[targets]
ubuntu = { factory = "here", limit = 4, privilege = "target.lab" }
plain = { factory = "here" }
default = { redirect = "ubuntu", privilege = "any" }
[resources]
bench = { well = "benches", names = ["bench-1", "bench-2"], privilege = "resource.bench" }
licence = { well = "benches", limit = 3, settings = { server = "l:1" }, public = ["server"] }
none = { well = "benches", names = [] }
one = { well = "benches" }
[limits]
queue = "1d"
grace = 5
retries = 0
output_bytes = 5
[retention]
upload = "2h"
failed = "3d"
"""
    here, benches = Maker("here", "process", {"python": "python3"}), Maker("benches", "lock")
    assert parse(text, "site.toml") == Site(
        factories={"here": here},
        wells={"benches": benches},
        targets={
            "ubuntu": Target("ubuntu", "here", 4, privilege="target.lab"),
            "plain": Target("plain", "here", 1),
            "default": Target("default", redirect="ubuntu", privilege="any"),
        },
        resources={
            "bench": ResourceType("bench", "benches", 2, ("bench-1", "bench-2"), "resource.bench"),
            "licence": ResourceType("licence", "benches", 3, settings={"server": "l:1"}, public=("server",)),
            "none": ResourceType("none", "benches", 0, ()),
            "one": ResourceType("one", "benches", 1),
        },
        limits=Limits(queue=24 * 3600, grace=5, retries=0, output_bytes=5),
        retention=Spans(upload=2 * 3600, failed=3 * 24 * 3600),
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "\ufeff", "[limits]\r\n", "factories = {}"])
def test_a_site_may_be_empty(text: str) -> None:
    assert parse(text, "site.toml") == Site()


def test_a_warm_worker_serves_its_owner_and_a_warm_resource_anybody_unless_the_site_says_otherwise() -> None:
    resource = "[resources.r]\nwell = 'benches'\n"
    for serves, targets, resources in (
        ("", Serves.OWNER, Serves.SITE),
        ("serves = 'site'", Serves.SITE, Serves.SITE),
        ("serves = 'owner'", Serves.OWNER, Serves.OWNER),
    ):
        warm = f"warm = {{ {serves} }}\n"
        found = parse(f"{GOOD}{warm}{resource}{warm}", "site.toml")
        assert isinstance(found, Site), found
        kept = found.targets["ubuntu"].warm, found.resources["r"].warm
        assert [each and each.serves for each in kept] == [targets, resources]


def test_the_example_site_is_good() -> None:
    text = (Path(__file__).parents[2] / "examples/site.toml").read_text()
    assert isinstance(parse(text, "examples/site.toml"), Site)


HEALTH = [
    ("health = 3", 9, 10, "targets.x.health", "wants a table, not a whole number"),
    ("health = {}", 9, 10, "targets.x.health", "`targets.x.health` has neither `before` nor `after`"),
    ("health = { timeout = '1m' }", 9, 10, "targets.x.health", "has neither `before` nor `after`"),
    ("health = { before = 'x', timeout = '6m' }", 9, 36, "targets.x.health.timeout", "from 1 second to 5 minutes"),
    ("health = { after = 3 }", 9, 20, "targets.x.health.after", "wants a script"),
    ("health = { after = '' }", 9, 20, "targets.x.health.after", "is empty"),
    (f"health = {{ before = '{'x' * 16385}' }}", 9, 21, "targets.x.health.before", "is longer than 16 KiB"),
    ('health = { before = "x\\u0000" }', 9, 21, "targets.x.health.before", "has a zero byte"),
    ("health = { befor = 'x' }", 9, 12, "targets.x.health.befor", "unknown key `befor`"),
]


@pytest.mark.parametrize(("keys", "line", "column", "where", "message"), HEALTH)
def test_wrong_health_checks(keys: str, line: int, column: int, where: str, message: str) -> None:
    found = only(f"{GOOD}[targets.x]\nfactory = 'here'\n{keys}")
    assert (found.line, found.column, found.where) == (line, column, where)
    assert message in found.message


@pytest.mark.parametrize(("keys", "sudo"), [("", True), ("sudo = true", True), ("sudo = false", False)])
def test_jobs_may_become_root_unless_the_target_says_that_they_may_not(keys: str, sudo: bool) -> None:
    site = parse(f"{GOOD}{keys}\n", "site.toml")
    assert isinstance(site, Site), site
    assert site.targets["ubuntu"].sudo is sudo


def test_a_redirect_has_no_health_check_of_its_own() -> None:
    found = only(f"{GOOD}[targets.x]\nredirect = 'ubuntu'\nhealth = {{ before = 'x' }}")
    assert found.message == "a redirect has no `health` of its own"


@pytest.mark.parametrize(
    ("keys", "health", "seconds"),
    [
        ("before = 'df'", Health("df"), 60),
        ("after = 'ls'\ntimeout = '5m'", Health("", "ls", 300), 300),
        ("before = '''\nx\n\ty\n'''\nafter = 'y'\ntimeout = '1s'", Health("x\n\ty\n", "y", 1), 2),
    ],
)
def test_health_checks(keys: str, health: Health, seconds: int) -> None:
    site = parse(f"{GOOD}[targets.ubuntu.health]\n{keys}\n", "site.toml")
    assert isinstance(site, Site)
    assert site.targets["ubuntu"].health == health
    assert health.seconds == seconds
    assert Health().seconds == 0


def test_a_health_check_may_have_just_so_many_bytes() -> None:
    for more, good in ((0, True), (1, False)):
        site = parse(f"{GOOD}[targets.ubuntu.health]\nafter = '{'x' * (16384 + more)}'\n", "site.toml")
        assert isinstance(site, Site) is good


def test_a_byte_order_mark_moves_no_column() -> None:
    assert (only("\ufeffquota = 1").line, only("\ufeffquota = 1").column) == (1, 1)


def test_a_name_that_leads_nowhere_in_an_empty_table_says_what_to_add() -> None:
    assert only("targets.x.factory = 'here'").hint == "add a table [factories.NAME]"


def test_all_faults_are_told_in_the_order_of_lines() -> None:
    found = faults("[limits]\nretries = 'x'\n[targets.a]\nredirect = 'b'\n[targets.b]\nlimit = -1\n[quota]\n")
    assert [(one.line, one.where) for one in found] == [
        (2, "limits.retries"),
        (6, "targets.b.limit"),
        (7, "quota"),
    ]


@pytest.mark.parametrize(
    ("count", "good"), [(MAX_REDIRECTS, True), (MAX_REDIRECTS + 1, False), (MAX_REDIRECTS + 9, False)]
)
def test_redirects_may_follow_one_another_up_to_a_bound(count: int, good: bool) -> None:
    chain = "".join(f"[targets.t{at}]\nredirect = 't{at + 1}'\n" for at in range(count))
    text = f"[factories.f]\ndriver = 'x'\n{chain}[targets.t{count}]\nfactory = 'f'\n"
    if good:
        assert isinstance(parse(text, "site.toml"), Site)
        return
    found = faults(text)
    assert [one.where for one in found] == [f"targets.t{at}.redirect" for at in range(count - MAX_REDIRECTS)]
    assert {one.message for one in found} == {f"more than {MAX_REDIRECTS} redirects follow one another"}


def calls(text: str) -> int:
    """How many calls it takes to refuse a site: what its time is made of, on any machine."""
    count = 0

    def seen(frame: object, event: str, given: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        faults(text)
    finally:
        sys.setprofile(None)
    return count


WRONG: Sequence[Callable[[int], str]] = (
    lambda many: "".join(f"[targets.t{at}]\nfactory = 'f{at}'\n" for at in range(many)),
    lambda many: "[resources.r]\nnames = [" + "'!'," * many + "]",
    lambda many: "\n".join(f"k{at} = 1" for at in range(many)),
)


@pytest.mark.no_cover
@pytest.mark.parametrize("wrong", WRONG)
def test_a_site_that_is_wrong_all_over_is_refused_briefly_and_with_no_more_work_than_it_is_long(
    wrong: Callable[[int], str],
) -> None:
    assert 0 < len(faults(wrong(MAX_SLOTS + 1))) <= MAX_FAULTS
    assert calls(wrong(2000)) < 2.5 * calls(wrong(1000))


VALUES = st.sampled_from(["1", "'a'", "'b'", "''", "true", "[]", "['a']", "{}", "{ a = 1 }", "1.5", "2026-01-01"])
KEYS = ["driver", "factory", "well", "redirect", "limit", "names", "privilege", "settings", "warm", "queue", "lease"]
TABLES = st.sampled_from(["factories", "wells", "targets", "resources"])


@given(st.dictionaries(st.tuples(TABLES, st.sampled_from("ab"), st.sampled_from(KEYS)), VALUES, max_size=12))
def test_every_fault_has_a_place_and_every_good_site_leads_somewhere(entries: dict[tuple[str, str, str], str]) -> None:
    text = "".join(f"{'.'.join(path)} = {value}\n" for path, value in entries.items())
    found = parse(text, "site.toml")
    if isinstance(found, Site):
        assert all(found.resolve(name) for name in found.targets)
        assert all(target.redirect or target.factory in found.factories for target in found.targets.values())
        assert all(kind.well in found.wells for kind in found.resources.values())
        return
    lines = text.split("\n")
    for fault in found:
        assert fault.where
        assert fault.line
        assert fault.column
        assert fault.column <= len(lines[fault.line - 1])


@given(st.text(st.sampled_from("ab[]{}=.,'\"\n\r# \\3\ufeff\ud800"), max_size=40))
def test_no_text_makes_it_raise(text: str) -> None:
    found = parse(text, "site.toml")
    if isinstance(found, tuple):
        assert all(fault.line and fault.column for fault in found)


def test_a_rate_is_the_cores_and_no_setting_of_the_driver() -> None:
    found = parse(GOOD + "[wells.w]\ndriver = 'x'\nrate = 0.5\nzone = 'a'\n", "site.toml")
    assert isinstance(found, Site)
    assert found.wells["w"] == Maker("w", "x", {"zone": "a"}, 0.5)
    assert found.wells["benches"].rate is None


def test_a_site_may_have_environments() -> None:
    found = parse(GOOD + f"[environments.p]\n{OWNERS}\nlogins = ['Octo']\n", "site.toml")
    assert isinstance(found, Site)
    made = found.environments["p"]
    assert made == Environment("p", owners=("ada",), logins=("Octo",))
    assert (made.is_reviewed_by("octo"), made.is_reviewed_by("bert"), made.people) == (True, False, "Octo at GitHub")
    assert [made.takes(ref) for ref in ("refs/heads/a/b", "refs/pull/1", "")] == [True, False, False]


def test_a_site_may_have_prices() -> None:
    none = parse(GOOD, "site.toml")
    assert isinstance(none, Site)
    assert none.prices is None
    dollars = parse(GOOD + "[prices]\n", "site.toml")
    assert isinstance(dollars, Site)
    assert dollars.prices == Prices("USD", Micros(1_000_000), Micros(23_000), Micros(0))
    table = "[prices]\ncurrency = 'EUR'\ndollar = 0.92\nstored = 0.021\nsent = 1\n"
    priced = f"[targets.p]\nfactory = 'here'\nprice = 0.0816\n[resources.r]\nwell = 'benches'\nprice = 3\n{table}"
    found = parse(GOOD + priced, "site.toml")
    assert isinstance(found, Site), found
    assert found.prices == Prices("EUR", Micros(920_000), Micros(21_000), Micros(1_000_000))
    assert (found.targets["p"].price, found.resources["r"].price) == (81_600, 3_000_000)


def test_a_site_may_have_budgets() -> None:
    plain = parse(GOOD + "[prices]\n[budgets]\n", "site.toml")
    assert isinstance(plain, Site)
    assert plain.budgets == Budgets(Period.MONTH, None, 80, {})
    assert plain.budgets.of("ada") is None
    table = "[budgets]\nperiod = 'day'\ndefault = 10\nwarn = 50\nowners = { ada = 0.5, 'oxide:hubris' = 7 }\n"
    found = parse(f"{GOOD}[prices]\n{table}", "site.toml")
    assert isinstance(found, Site), found
    assert found.budgets
    assert (found.budgets.period, found.budgets.warn) == (Period.DAY, 50)
    budgets = [found.budgets.of(name) for name in ("ada", "oxide:hubris", "bea")]
    assert budgets == [500_000, 7_000_000, 10_000_000]


def test_a_site_may_have_shares() -> None:
    none = parse(GOOD, "site.toml")
    assert isinstance(none, Site)
    assert none.shares is None
    table = "[shares]\nhalf_life = '2h'\ndefault = 3\nweights = { ada = 2, 'oxide:hubris' = 7 }\n"
    found = parse(GOOD + table, "site.toml")
    assert isinstance(found, Site)
    assert found.shares
    assert found.shares.half_life == 7200
    assert [found.shares.weight(name) for name in ("ada", "oxide:hubris", "bea")] == [2, 7, 3]
    plain = parse(GOOD + "[shares]\n", "site.toml")
    assert isinstance(plain, Site)
    assert plain.shares == Shares(half_life=86400, default=1, weights={})


def test_hosts_have_labels_and_are_named_besides_those_that_only_have_names() -> None:
    text = "[factories.f]\ndriver = 'hosts'\n[targets.t]\nfactory = 'f'\nnames = ['a', 'b']\n"
    text += "[targets.t.hosts.c]\nlabels = { k = 'v' }\n[targets.t.hosts.b]\n"
    found = parse(text, "site.toml")
    assert isinstance(found, Site), found
    target = found.targets["t"]
    assert (target.names, target.slots, target.limit) == (("a", "b", "c"), ("a", "b", "c"), 3)
    assert target.labels == {"c": {"k": "v"}}
    shape = found.pools()["target/t"]
    assert (shape.names, shape.labels, shape.hosts) == (("a", "b", "c"), {"c": {"k": "v"}}, True)


def test_a_host_has_labels_only() -> None:
    text = "[factories.f]\ndriver = 'hosts'\n[targets.t]\nfactory = 'f'\nhosts.a = { address = '10.0.0.1' }\n"
    [fault] = parse(text, "site.toml")  # type: ignore[misc]
    assert (fault.line, fault.message, fault.hint) == (5, "a host has no `address`", "only `labels`")


def test_things_are_named_besides_those_that_only_have_names() -> None:
    text = f"{R}names = ['a', 'b']\nleases = 2\n"
    text += "[resources.r.things.c]\nlabels = { k = 'v' }\nat = 'x'\n[resources.r.things.b]\n"
    site = parse(text, "site.toml")
    assert isinstance(site, Site), site
    kind = site.resources["r"]
    assert (kind.names, kind.limit, kind.labels) == (("a", "b", "c"), 3, {"c": {"k": "v"}})
    assert kind.things["c"].metadata == {"at": "x"}
    shape = site.pools()["resource/r"]
    assert (shape.limit, shape.labels) == (6, {"c": {"k": "v"}})
    other = parse(text.replace("at = 'x'", "at = 'y'"), "site.toml")
    assert isinstance(other, Site), other
    assert other.pools()["resource/r"].spec != shape.spec, "what a kept unit's job was told is not true any more"


def test_the_labels_and_leases_of_things_are_bounded() -> None:
    big = "".join(f"things.t{at}.labels.k = '{'v' * 128}'\n" for at in range(490))
    [fault] = parse(f"{R}{big}leases = 2\n", "site.toml")  # type: ignore[misc]
    assert "bytes as JSON; they may take at most 65536" in fault.message
    many = "".join(f"things.t{at} = {{}}\n" for at in range(11))
    [fault] = parse(f"{R}{many}leases = 100\n", "site.toml")  # type: ignore[misc]
    assert "has 11 things with 100 leases each; there may be 1000 leases in all" in fault.message
