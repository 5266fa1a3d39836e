"""Checks the settings of a `libcloud` factory. Everything that is wrong is told at once, with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from penstock.drivers.checks import not_empty, sentences, shell
from penstock.drivers.factories.libcloud.dialects import boot_argument
from penstock.drivers.factories.libcloud.settings import Settings
from penstock.drivers.secrets import REFERENCE
from penstock.kernel.errors import Misconfigured
from penstock.toml.checks import Place, clip, did_you_mean, entries, listed, matching, number, record, text, wanted

MISSING = "the libcloud driver needs Apache Libcloud, which is not installed here: `pip install penstock[libcloud]`, "
MISSING += "and for the functions `cdk deploy -c libcloud=true`"
MOST_ALTERNATIVES = 24
"""A create call may try all of them, at a few seconds each, and has two minutes."""

ENTRIES = 40
SECRETIVE = re.compile(r"(.*_)?(creds|key|passw(or)?d|secret)|(.*_)?auth_token|token", re.I)
"""Arguments that are credentials, by their names."""

OURS = ("name", "size", "image", "location", "auth")
AZURE = "azure_arm"
OPENSTACK = "openstack"
EXAMPLE = '{ provider = "openstack", sizes = ["m1.large"], image = "…" }'


def read(given: Mapping[str, Any]) -> Settings:
    """The settings that a site gave. Raises Misconfigured."""
    top = Place(("libcloud",))
    found = _checked(given, top)
    if found is None:
        raise Misconfigured("; ".join(sentences(top)))
    return found


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, a sentence each. Also that there is no libcloud here to work with."""
    top = Place(("libcloud",))
    _checked(given, top)
    return [*sentences(top), *([] if is_installed() else [MISSING])]


def is_installed() -> bool:
    """Whether there is an Apache Libcloud here."""
    return find_spec("libcloud") is not None


def _checked(given: Mapping[str, Any], top: Place) -> Settings | None:
    values = _keys(given, top)
    if top.faults:
        return None
    found = Settings(**values)
    _check_together(found, top)
    return None if top.faults else found


def _check_together(found: Settings, top: Place) -> None:
    """What is right alone, and wrong together."""
    boot = boot_argument(found)
    if boot is None:
        hint = f"name create_node's argument for user data, for `{found.provider}` is not known here"
        top.fault("`libcloud` has no `boot_argument`", hint)
    for name in found.create:
        if name in OURS or name == boot:
            (top / "create" / name).fault(f"`{clip(name)}` cannot be set", "the driver gives it", on_key=True)
    for name in found.arguments:
        if name in found.credentials:
            (top / "arguments" / name).fault(f"`{clip(name)}` is under `credentials` as well", "leave one out")
    count = len(found.sizes) * max(1, len(found.locations))
    if count > MOST_ALTERNATIVES:
        message = f"`libcloud.sizes` and `locations` make {count} alternatives"
        (top / "sizes").fault(message, f"it may be {MOST_ALTERNATIVES} at the most; leave some out")
    if found.provider == OPENSTACK and not str(found.arguments.get("api_version", "2")).startswith("2"):
        hint = "leave it out: libcloud's drivers for older ones read only the first page of a list"
        (top / "arguments" / "api_version").fault("`api_version` must be 2.0 or more", hint)
    if found.provider == AZURE:
        _check_azure(found, top)


def _check_azure(found: Settings, top: Place) -> None:
    for name in ("ex_resource_group", "ex_network"):
        if not isinstance(found.create.get(name), str):
            (top / "create").fault(f"`libcloud.create` has no `{name}`", "Azure makes a machine in both")
    if len(found.locations) != 1:
        hint = "name one, and give each other one a factory of its own: a network of Azure is in one location"
        (top / "locations").fault("`libcloud.locations` must be one for Azure", hint)


def _provider(value: object, place: Place) -> str:
    found = text(value, place).lower()
    known = _providers()
    if found and known and found not in known:
        place.fault(f"{place.label}: libcloud has no provider `{clip(found)}`", did_you_mean(found, known))
    return found


def _providers() -> list[str]:
    """The providers that libcloud has machines of; none where it is not installed."""
    if not is_installed():
        return []
    from libcloud.compute.providers import DRIVERS

    return sorted(str(name) for name in DRIVERS)


def _plain(value: object, place: Place) -> dict[str, Any]:
    """A table of arguments for libcloud. It knows what they are; here they only may not be secrets."""
    found = dict(entries(value, place, ENTRIES, "a table of arguments"))
    for name in found:
        if SECRETIVE.fullmatch(name):
            hint = f'put it under `credentials`, by reference: {name} = "secretsmanager:penstock/cloud#{clip(name)}"'
            (place / name).fault(f"`{clip(name)}` looks like a credential", hint, on_key=True)
    return found


def _references(value: object, place: Place) -> dict[str, str]:
    found = {}
    for name, entry in entries(value, place, ENTRIES, "a table of references"):
        if not isinstance(entry, str):
            wanted("a reference", entry, place / name)
        elif not re.fullmatch(REFERENCE, entry):
            hint = (
                "like env:NAME, secretsmanager:penstock/cloud#key or ssm:/penstock/cloud/key: never the secret itself"
            )
            (place / name).fault(f"`{clip(name)}` is not a reference to a secret", hint)
        else:
            found[name] = entry
    return found


_argument = matching(
    r"[A-Za-z_]\w*(\.[\w-]+)?", "an argument of create_node", 'like "ex_userdata" or "ex_metadata.boot"'
)
_keys = record(
    {"provider": _provider, "sizes": not_empty(listed(text, MOST_ALTERNATIVES, "sizes"))},
    {
        "image": text,
        "locations": listed(text, MOST_ALTERNATIVES, "locations"),
        "credentials": _references,
        "arguments": _plain,
        "create": _plain,
        "boot_argument": _argument,
        "tags_argument": _argument,
        "ssh_key": matching(r"(ssh|ecdsa|sk)-\S+ \S+( .*)?", "a public key", 'like "ssh-ed25519 AAAA…"'),
        "prefix": matching(r"[a-z][a-z0-9]{0,11}", "a prefix", "up to 12 characters of a-z 0-9, a letter first"),
        "user_data": shell,
        "python": matching(r"[A-Za-z0-9_./-]+", "a program", 'like "/usr/bin/python3.11"'),
        "linger": number(0, 1440),
        "lag": number(5, 900),
    },
    EXAMPLE,
)
