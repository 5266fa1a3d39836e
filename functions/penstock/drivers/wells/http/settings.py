"""What a site may say of an `http` well, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from penstock.domain.site.sections import duration
from penstock.drivers.checks import sentences
from penstock.drivers.secrets import REFERENCE
from penstock.drivers.wells.http.options import check_schema
from penstock.kernel.errors import Misconfigured
from penstock.toml.checks import Place, matching, record, text

TIMEOUT, TIMEOUT_MOST = 5, 20
"""Seconds for one request. A step may make three, and a function that takes five steps lives for two minutes."""

URL_CHARS = 500
EXAMPLE = '{ url = "https://rack.example.com/penstock", secret = "secretsmanager:penstock/rack" }'


@dataclass(frozen=True)
class Settings:
    """Where the service is, what is signed with, and what jobs may ask of it."""

    url: str
    secret: str
    timeout: int = TIMEOUT
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parts(self) -> SplitResult:
        """The URL, taken apart."""
        return urlsplit(self.url)


def read(given: Mapping[str, Any]) -> Settings:
    """The settings that a site gave. Raises Misconfigured."""
    top = Place(("http",))
    values = _keys(given, top)
    if top.faults:
        raise Misconfigured("; ".join(sentences(top)))
    return Settings(**values)


def complaints(given: Mapping[str, Any]) -> Sequence[str]:
    """What is wrong with settings, a sentence each. Asks nobody."""
    top = Place(("http",))
    _keys(given, top)
    return sentences(top)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by the names that can be nothing else."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _url(value: object, place: Place) -> str:
    """An address without secrets in it. https, for its answers are what slots are freed by."""
    before = len(place.faults)
    found = text(value, place, URL_CHARS).rstrip("/")
    if len(place.faults) > before:
        return ""
    why = _wrong(found)
    if why:
        place.fault(f"{place.label} {why}", 'like "https://rack.example.com/penstock"')
    return found


def _wrong(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return "is no URL"
    if parts.scheme not in ("https", "http") or not host:
        return "is no URL of a service"
    if parts.scheme == "http" and not is_loopback(host):
        return "must be https; http is for a service on this machine only"
    if parts.username is not None or parts.password is not None:
        return "has credentials in it; they belong into `secret`"
    if parts.query or parts.fragment or "?" in url or "#" in url:
        return "has a query or a fragment"
    return None if url.isascii() and " " not in url else "holds characters that a URL cannot have"


_secret = matching(
    rf"{REFERENCE}|file:/[\w./@+-]+",
    "a reference to a secret",
    "like secretsmanager:penstock/rack, or file:/etc/rack.secret beside the local cloud",
)
_keys = record(
    {"url": _url, "secret": _secret},
    {"timeout": duration(TIMEOUT_MOST, f"{TIMEOUT_MOST} seconds"), "options": check_schema},
    EXAMPLE,
)
