"""The checks of a site's sections: canaries, [console], [environments], [github], health checks, [identity], [prices],
[retention].
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from penstock.domain.artifacts.retention import DAY, HOUR, Rule, Spans
from penstock.domain.github.names import check_login, check_ref
from penstock.domain.jobfile import Problems, parse, parse_duration
from penstock.domain.money import MILLION, MOST, Micros, micros_of
from penstock.domain.site.site import (
    EVERY,
    Budgets,
    CanaryScript,
    Console,
    Environment,
    GitHubApp,
    Health,
    Identity,
    Period,
    Prices,
    Shares,
)
from penstock.domain.users import oidc, users
from penstock.toml.checks import Check, Place, clip, entries, flag, listed, matching, number, record, text, wanted


def duration(most: int, spelled: str, least: int = 1) -> Check:
    """Seconds from `least` to `most`."""

    def check(value: object, place: Place) -> int:
        found = parse_duration(value)
        if isinstance(found, str):
            place.fault(f"{place.label}: {found}")
            return least
        if not least <= found <= most:
            place.fault(f"{place.label} must be from {format_span(least) if least else '0'} to {spelled}")
        return found

    return check


def privilege(value: object, place: Place) -> str:
    """The name of a privilege."""
    before = len(place.faults)
    found = text(value, place)
    if len(place.faults) == before and not users.is_privilege(found):
        place.fault(f"{place.label}: `{clip(found)}` cannot be a privilege", "lower-case, like target.lab")
    return found


_DAY = 24 * 3600


CANARY_EVERY_LEAST = 60
"""How often a canary may be run at most, in seconds: the sweep looks each minute."""

CANARY = 'every = "1h", script = "df -h /work"'


def canary_of_target(value: object, place: Place) -> CanaryScript:
    """The canary of a target."""
    return _checked_canary(_target_canary(value, place), place)


def canary_of_resource(value: object, place: Place) -> CanaryScript:
    """The canary of a resource type, which needs a target to run on."""
    return _checked_canary(_resource_canary(value, place), place)


def _checked_canary(found: dict[str, Any], place: Place) -> CanaryScript:
    if found.get("every", CANARY_EVERY_LEAST) < CANARY_EVERY_LEAST:
        (place / "every").fault(
            f"{place.label}.every must be at least {CANARY_EVERY_LEAST} seconds", "the sweep looks each minute"
        )
    return CanaryScript(**{"every": CANARY_EVERY_LEAST, "script": "", **found})


def _canary_script(value: object, place: Place) -> str:
    """A job file, or a script for bash."""
    before = len(place.faults)
    script = check_script(value, place)
    whole = script if script.startswith("#!") else f"#!/bin/bash\n{script}"
    found = parse(whole, place.label)
    if isinstance(found, Problems) and len(place.faults) == before:
        place.fault(f"{place.label} is not a job file that can run: {found.items[0].message}", found.items[0].hint)
    return whole


_canary_needs = {"every": duration(30 * _DAY, "30 days"), "script": _canary_script}


_canary_may = {"timeout": duration(3600, "1 hour")}


_target_canary = record(_canary_needs, _canary_may, f"{{ {CANARY} }}")


_resource_canary = record({**_canary_needs, "target": text}, _canary_may, f'{{ {CANARY}, target = "default" }}')

MAX_REPOSITORIES = 1000


API = r"https://[a-z0-9.-]{1,200}(:[0-9]{1,5})?(/[a-z0-9/._-]{0,100}[a-z0-9])?|http://127\.0\.0\.1:[0-9]{1,5}"
"""Where GitHub's API is. What the App's key signs is shown there, so nobody on the way may read it."""

GITHUB = 'app = 12345, repositories = ["oxide/hubris"]'


def check_github(value: object, place: Place) -> GitHubApp:
    """The App, and the repositories of which it takes jobs."""
    found = _github_keys(value, place)
    lower = tuple(each.lower() for each in found.get("repositories", ()))
    return GitHubApp(**{"app": 1, **found, "repositories": lower})


def _api(value: object, place: Place) -> str:
    before = len(place.faults)
    found = text(value, place, most=400)
    if len(place.faults) == before and not re.fullmatch(API, found):
        place.fault(
            f"{place.label}: `{clip(found)}` is not the URL of an API", "like https://github.example.com/api/v3"
        )
    return found


_repository = matching(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}/(\*|[A-Za-z0-9._-]{1,100})", "a repository", "as in oxide/hubris, or oxide/*"
)


_github_keys = record(
    {"app": number(1, 2**53), "repositories": listed(_repository, MAX_REPOSITORIES, "repositories")},
    {"api": _api, "client_id": matching(r"[A-Za-z0-9._-]{1,100}", "a client ID", "like Iv23liAbCdEf")},
    f"{{ {GITHUB} }}",
)

MAX_HEALTH_SECONDS = 300
"""How long a script may take at most: the job waits for it."""

SCRIPT_BYTES = 16 * 1024
"""How long a script may be. It travels with every job's assignment, and stands in the site's one item."""

HEALTH = 'before = "df -h /work"'


def check_health(value: object, place: Place) -> Health:
    """The scripts that tell whether a machine is fit; one of them at least."""
    before = len(place.faults)
    found = _health_keys(value, place)
    if not found.keys() & {"before", "after"} and len(place.faults) == before:
        place.fault(f"{place.label} has neither `before` nor `after`", f"like {HEALTH}")
    return Health(**found)


def check_script(value: object, place: Place) -> str:
    """A script for bash, of any number of lines."""
    if not isinstance(value, str):
        wanted("a script", value, place, f"like {HEALTH}")
        return ""
    if not value.strip():
        place.fault(f"{place.label} is empty")
    elif len(value.encode()) > SCRIPT_BYTES:
        place.fault(f"{place.label} is longer than {SCRIPT_BYTES // 1024} KiB", "call a program of the image from it")
    elif "\0" in value:
        place.fault(f"{place.label} has a zero byte", "no shell reads that")
    return value


_health_keys = record(
    {},
    {"before": check_script, "after": check_script, "timeout": duration(MAX_HEALTH_SECONDS, "5 minutes")},
    f"{{ {HEALTH} }}",
)

MAX_AUDIENCES = 50
"""How many audiences one site may name."""


def check_identity(value: object, place: Place) -> Identity:
    """The audiences that a site allows."""
    return Identity(**_identity_keys(value, place))


def _audience(value: object, place: Place) -> str:
    before = len(place.faults)
    found = text(value, place)
    if len(place.faults) == before and not oidc.is_audience(found):
        hint = "1 to 255 printable characters without blanks, like sts.amazonaws.com"
        place.fault(f"{place.label}: `{clip(found)}` cannot be an audience", hint)
    return found


_identity_keys = record(
    {"audiences": listed(_audience, MAX_AUDIENCES, "audiences")},
    {"privilege": privilege},
    'audiences = ["sts.amazonaws.com"]',
)

CONSOLE = 'public = ["oxide:hubris"]'

MAX_PUBLIC = 1000
"""How many repositories a site may call public."""


def check_console(value: object, place: Place) -> Console:
    """The repositories whose jobs everybody may read."""
    return Console(**_console_keys(value, place))


def _public(value: object, place: Place) -> str:
    return _name_of(value, place, "a repository", f'like oxide:hubris, or "{EVERY}" for all', _is_public)


def _is_public(name: str) -> bool:
    return name == EVERY or (users.is_name(name) and users.is_repository(name))


_console_keys = record({}, {"public": listed(_public, MAX_PUBLIC, "repositories")}, CONSOLE)

ENVIRONMENT = 'owners = ["oxide:hubris"], reviewers = ["ada"]'

MAX_NAMED = 100
"""How many owners, refs, privileges, reviewers or logins an environment may name of each."""


def check_environment(name: str, value: object, place: Place) -> Environment:
    """An environment. Without anybody who reviews, a job would wait for nobody."""
    before = len(place.faults)
    found = _environment_keys(value, place)
    if len(place.faults) == before and not (found.get("reviewers") or found.get("logins")):
        place.fault(f"{place.label} has neither `reviewers` nor `logins`: nobody could approve", ENVIRONMENT)
    return Environment(**{"name": name, **found})


def _owner(value: object, place: Place) -> str:
    return _name_of(value, place, "a user or a repository", "like ada, or oxide:hubris", users.is_name)


def _reviewer(value: object, place: Place) -> str:
    return _name_of(value, place, "a user", "like ada; people at GitHub stand in `logins`", users.is_person)


def _name_of(value: object, place: Place, what: str, hint: str, is_one: Callable[[str], bool]) -> str:
    before = len(place.faults)
    found = text(value, place)
    if len(place.faults) == before and not is_one(found):
        place.fault(f"{place.label}: `{clip(found)}` is not {what}", hint)
    return found


_environment_keys = record(
    {"owners": listed(_owner, MAX_NAMED, "users and repositories")},
    {
        "refs": listed(check_ref, MAX_NAMED, "refs"),
        "privileges": listed(privilege, MAX_NAMED, "privileges"),
        "reviewers": listed(_reviewer, MAX_NAMED, "users"),
        "logins": listed(check_login, MAX_NAMED, "logins"),
        "self_review": flag,
    },
    f"{{ {ENVIRONMENT} }}",
)

MAX_WEIGHTS = 1000
"""How many users and repositories may have a weight of their own."""

MAX_WEIGHT = 10_000


def check_shares(value: object, place: Place) -> Shares:
    """Half-life and weights."""
    return Shares(**_share_keys(value, place))


def _weights(value: object, place: Place) -> dict[str, int]:
    """The weights, by the names of users and repositories."""
    return dict(_of_owners(value, place, _weight, 'a table like { ada = 2, "oxide:hubris" = 4 }'))


def _of_owners(value: object, place: Place, check: Check, what: str) -> Iterator[tuple[str, Any]]:
    """The names of users and repositories, each with its checked value."""
    for name, one in entries(value, place, MAX_WEIGHTS, what):
        if not users.is_name(name):
            (place / name).fault(
                f"`{clip(name)}` is no user and no repository", "like ada, or oxide:hubris", on_key=True
            )
        yield name, check(one, place / name)


_weight = number(1, MAX_WEIGHT)

_share_keys = record(
    {},
    {"half_life": duration(90 * _DAY, "90 days", least=60), "default": _weight, "weights": _weights},
    '{ half_life = "1d" }',
)

CURRENCY = r"[A-Z]{3}"
"""ISO 4217 names a currency by three letters."""


def check_prices(value: object, place: Place) -> Prices:
    """The currency, and what bytes cost. What AWS charges in dollars is converted, if the currency is another."""
    before = len(place.faults)
    found = _price_keys(value, place)
    if len(place.faults) > before:
        return Prices()
    if "dollar" not in found and found.get("currency", "USD") != "USD":
        place.fault(f"{place.label} has no `dollar`", f"what a US dollar costs in {found['currency']}: dollar = 0.92")
    return Prices(**found)


def price(value: object, place: Place) -> Micros:
    """An amount of the site's currency, of six decimals at most."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        wanted("a price", value, place, "a number like 0.0816")
        return Micros(0)
    found = micros_of(value)
    if found is None:
        place.fault(f"{place.label} must be from 0 to {MOST // MILLION}, with six decimals at most")
    return found or Micros(0)


def _dollar(value: object, place: Place) -> Micros:
    """What a US dollar costs, which is not nothing."""
    before = len(place.faults)
    found = price(value, place)
    if len(place.faults) == before and not found:
        place.fault(f"{place.label} must be more than 0")
    return found


_price_keys = record(
    {},
    {
        "currency": matching(CURRENCY, "a currency", "three capital letters, like EUR"),
        "dollar": _dollar,
        "stored": price,
        "sent": price,
    },
    '{ currency = "USD" }',
)


def check_budgets(value: object, place: Place) -> Budgets:
    """The period, and how much each owner may spend in it."""
    return Budgets(**_budget_keys(value, place))


def _period(value: object, place: Place) -> Period:
    if value in [str(each) for each in Period]:
        return Period(str(value))
    hint = " or ".join(f'"{each}"' for each in Period)
    if isinstance(value, str):
        place.fault(f"{place.label} cannot be {clip(value)!r}", f"it is {hint}")
    else:
        wanted(hint, value, place)
    return Period.MONTH


def _owners(value: object, place: Place) -> dict[str, Micros]:
    """The budgets, by the names of users and repositories."""
    return dict(_of_owners(value, place, price, 'a table like { ada = 50, "oxide:hubris" = 400 }'))


_budget_keys = record(
    {},
    {"period": _period, "default": price, "warn": number(1, 100), "owners": _owners},
    "{ default = 100 }",
)

UNITS = ((DAY, "day"), (HOUR, "hour"), (60, "minute"), (1, "second"))


def check_retention(value: object, place: Place) -> Spans:
    """The spans that a site says, and the defaults of the others; of no account where there are faults."""
    before = len(place.faults)
    found = _retention_keys(value, place)
    return Spans(**found) if len(place.faults) == before else Spans()


def format_span(seconds: int) -> str:
    """Seconds in the largest unit that they are a whole number of."""
    unit, name = next((unit, name) for unit, name in UNITS if seconds % unit == 0)
    return f"{seconds // unit} {name}{'' if seconds == unit else 's'}"


def _lasting(rule: Rule) -> Check:
    def check(value: object, place: Place) -> int:
        found = parse_duration(value)
        if isinstance(found, str):
            place.fault(f"{place.label}: {found}")
            return rule.least
        if not rule.least <= found <= rule.most:
            place.fault(f"{place.label} must be from {format_span(rule.least)} to {format_span(rule.most)}")
        return found

    return check


_retention_keys = record(
    {}, {each.name: _lasting(each.metadata["rule"]) for each in fields(Spans)}, '{ failed = "14d" }'
)
