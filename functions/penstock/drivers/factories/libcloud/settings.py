"""The settings of a `libcloud` factory, and their checks. docs/operators/libcloud.md describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from importlib.util import find_spec
from typing import Any

from penstock.drivers.checks import not_empty, sentences, shell
from penstock.drivers.factories.libcloud.providers import PROVIDERS, Provider
from penstock.drivers.secrets import REFERENCE
from penstock.kernel.errors import Misconfigured
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Place, clip, did_you_mean, entries, listed, matching, number, record, text, wanted


@dataclass(frozen=True)
class Settings:
    """The settings of a factory: what its machines are, and where."""

    provider: str
    sizes: tuple[str, ...]
    image: str | None = None
    locations: tuple[str, ...] = ()
    credentials: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    create: Mapping[str, Any] = field(default_factory=dict)
    boot_argument: str | None = None
    tags_argument: str | None = None
    ssh_key: str | None = None
    prefix: str = "penstock"
    user_data: str = ""
    python: str = "python3"
    linger: int = 60
    lag: int = 60


MISSING = (
    "the libcloud driver needs Apache Libcloud, which is not installed here: run `pip install penstock[libcloud]`, "
    "and deploy the functions with `penstock deploy -c libcloud=true`"
)


MOST_ALTERNATIVES = 24
"""Each takes a few seconds: one `create` tries as many as it has time for, and the next goes on behind them."""

ENTRIES = 40
CREDENTIAL_NAME = re.compile(r"(.*_)?(creds|key|passw(or)?d|secret)|(.*_)?auth_token|token", re.I)
"""Names of arguments that are credentials."""

RESERVED = ("name", "size", "image", "location", "auth")
AZURE = "azure_arm"
OPENSTACK = "openstack"
EXAMPLE = '{ provider = "openstack", sizes = ["m1.large"], image = "…" }'


def read(given: Mapping[str, Any]) -> Settings:
    """The settings in a site's table. Raises Misconfigured."""
    top = Place(("libcloud",))
    found = _checked(given, top)
    if found is None:
        raise Misconfigured("; ".join(sentences(top)))
    return found


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, one sentence each; also whether Apache Libcloud is missing."""
    top = Place(("libcloud",))
    _checked(given, top)
    return [*sentences(top), *([] if is_installed() else [MISSING])]


def is_installed() -> bool:
    """Whether Apache Libcloud is installed."""
    return find_spec("libcloud") is not None


def _checked(given: Mapping[str, Any], top: Place) -> Settings | None:
    values = _keys(given, top)
    if top.faults:
        return None
    found = Settings(**values)
    _check_together(found, top)
    return None if top.faults else found


def _check_together(found: Settings, top: Place) -> None:
    """Settings that are valid alone and contradict each other."""
    boot = boot_argument(found)
    if boot is None:
        hint = f"name create_node's argument for user data: Penstock does not know that of `{found.provider}`"
        top.fault("`libcloud` has no `boot_argument`", hint)
    for name in found.create:
        if name in RESERVED or name == boot:
            (top / "create" / name).fault(f"`{clip(name)}` cannot be set", "the driver sets it", on_key=True)
    for name in found.arguments:
        if name in found.credentials:
            (top / "arguments" / name).fault(f"`{clip(name)}` is also under `credentials`", "set it only once")
    count = len(found.sizes) * max(1, len(found.locations))
    if count > MOST_ALTERNATIVES:
        message = f"`libcloud.sizes` and `locations` make {count} alternatives"
        (top / "sizes").fault(message, f"at most {MOST_ALTERNATIVES} are allowed; leave some out")
    if found.provider == OPENSTACK and not str(found.arguments.get("api_version", "2")).startswith("2"):
        hint = "leave it out: libcloud's drivers for older versions read only the first page of a list"
        (top / "arguments" / "api_version").fault("`api_version` must be 2.0 or more", hint)
    if found.provider == AZURE:
        _check_azure(found, top)


def _check_azure(found: Settings, top: Place) -> None:
    for name in ("ex_resource_group", "ex_network"):
        if not isinstance(found.create.get(name), str):
            (top / "create").fault(
                f"`libcloud.create` has no `{name}`", "an Azure machine needs a resource group and a network"
            )
    if len(found.locations) != 1:
        hint = "name one location, and use another factory for each other: an Azure network is in one location"
        (top / "locations").fault("`libcloud.locations` must be one for Azure", hint)


def _provider(value: object, place: Place) -> str:
    found = text(value, place).lower()
    known = _providers()
    if found and known and found not in known:
        place.fault(f"{place.label}: libcloud has no provider `{clip(found)}`", did_you_mean(found, known))
    return found


def _providers() -> list[str]:
    """The providers of libcloud's compute API; none if libcloud is not installed."""
    if not is_installed():
        return []
    from libcloud.compute.providers import DRIVERS

    return sorted(str(name) for name in DRIVERS)


def _plain(value: object, place: Place) -> dict[str, Any]:
    """A table of arguments for libcloud, which checks them itself. Here only credentials are refused."""
    found = dict(entries(value, place, ENTRIES, "a table of arguments"))
    for name in found:
        if CREDENTIAL_NAME.fullmatch(name):
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


def provider_of(settings: Settings) -> Provider:
    """How to call the provider of a factory."""
    return PROVIDERS.get(settings.provider, Provider())


def boot_argument(settings: Settings) -> str | None:
    """The argument for the boot script."""
    return settings.boot_argument or provider_of(settings).boot


def tags_argument(settings: Settings) -> str | None:
    """The argument for tags; None if the provider has no tags."""
    return settings.tags_argument or provider_of(settings).tags
