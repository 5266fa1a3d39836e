"""A site in which every table and key is set, and each of its changes: one key has another value."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import tomlkit

FULL = """
[factories.hand]
driver = "hand"
rate = 2
image = "ami-1"

[factories.other]
driver = "hand"

[wells.locks]
driver = "lock"
rate = 2
zone = "a"

[wells.spare]
driver = "lock"

[targets.linux]
factory = "hand"
limit = 4
privilege = "target.lab"
uses = { cores = 2 }
sudo = true
price = 0.08
warm = { min = 1, max = 2, idle = "10m", life = "1d", reuse = 9, serves = "owner" }
health = { before = "true", after = "true", timeout = "1m" }
canary = { every = "1h", script = "true", timeout = "5m" }
machine = { cpus = 4, memory = "16GiB", scratch = "1TiB", gpu = 1, arch = "arm64" }

[targets.small]
factory = "hand"
price = 0.04
machine = { cpus = 2 }

[targets.any]
machines = ["small"]
price_band = 1.5

[targets.bench]
factory = "hand"
names = ["bench-1"]
machine = { cpus = 8, memory = "32GiB" }
share = { parts = 4, serves = "owner" }

[targets.bench.hosts.bench-1]
labels = { rack = "4" }

[targets.default]
redirect = "linux"

[resources.db]
well = "locks"
limit = 4
privilege = "resource.db"
settings = { size = "small" }
uses = { tokens = 1 }
warm = { min = 1, max = 2, idle = "10m", life = "1d", reuse = 9, serves = "owner" }
canary = { every = "1h", script = "true", timeout = "5m", target = "linux" }
public = ["zone"]
price = 2.5

[resources.jig]
well = "locks"
names = ["jig-1"]
leases = 2

[resources.jig.things.jig-1]
labels = { board = "gimlet" }
address = "10.0.0.1"

[quotas.cores]
amount = 8

[quotas.tokens]
amount = 8

[limits]
queue = "6d"
timeout = "4h"
timeout_most = "1d"
grace = 30
heartbeat = 50
lease = 120
boot = 600
idle_hold = 3600
retries = 1
output_bytes = 1000000
hold = "1h"
cache_bytes = 1000000
unpacked_bytes = 1000000
unpacked_entries = 1000
unpacked_depth = 100
unpacked_ratio = 200
log_bytes = 100000
log_events = 1000
jobs = 1000
submits = 1000
stored_bytes = 1000000
script_bytes = 1000000
at_once = 3

[retention]
upload = "12h"
succeeded = "30d"
failed = "14d"
errored = "14d"
cancelled = "7d"
latest_failure = "90d"
cache = "14d"
log = "1h"
log_wait = "1d"
look = "1h"
stray = "2d"
inventory = "2d"

[identity]
audiences = ["https://a.example"]
privilege = "identity.aws"

[console]
public = ["oxide:hubris"]

[shares]
half_life = "1d"
default = 1
weights = { ada = 2 }

[prices]
currency = "EUR"
dollar = 0.92
stored = 0.02
sent = 0.01

[budgets]
period = "month"
default = 100
warn = 90
owners = { ada = 50 }

[github]
app = 1
repositories = ["oxide/hubris"]
api = "https://github.example.com/api"
client_id = "Iv1.a"

[environments.production]
owners = ["oxide:hubris"]
refs = ["refs/heads/main"]
privileges = ["target.signer"]
reviewers = ["ada"]
logins = ["octocat"]
self_review = false
"""

OTHERS = {
    "idle": "11m", "life": "2d", "serves": "site", "timeout_most": "2d", "factory": "other", "well": "spare",
    "redirect": "bench", "target": "bench", "api": "https://other.example.com", "driver": "another",
    "privilege": "other.one", "currency": "CHF", "period": "day", "script": "false", "before": "false",
    "after": "false", "memory": "8GiB", "scratch": "2TiB", "arch": "x86_64",
}  # fmt: skip
"""Other values of keys that cannot be anything."""

LISTED = {
    "audiences": "https://b.example", "repositories": "acme/tools", "owners": "eve", "refs": "refs/heads/next",
    "reviewers": "bert", "logins": "hubot", "privileges": "target.other", "names": "another", "public": "another",
    "machines": "linux",
    "console.public": "acme:tools",
}  # fmt: skip
"""One more entry of lists."""

Path = tuple[str, ...]


def document() -> dict[str, Any]:
    """The whole site as TOML has it."""
    return tomllib.loads(FULL)


def leaves(table: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Each key with its value."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def keys() -> list[tuple[Path, Any]]:
    """Each key of the whole site with its value."""
    return list(leaves(document()))


def changed(path: Path, value: Any) -> str:
    """The site's text with another value for one key."""
    whole = document()
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    whole_path = ".".join(path)
    inner[path[-1]] = _other(whole_path if whole_path in LISTED else path[-1], value)
    return tomlkit.dumps(copy.deepcopy(whole))


def _other(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return [*value, LISTED[key]]
    if isinstance(value, bool):
        return not value
    if key in OTHERS:
        return OTHERS[key]
    if isinstance(value, int | float):
        return value + 1
    number, unit = value[:-1], value[-1]
    return f"{int(number) + 1}{unit}" if number.isdigit() else f"{value}x"
