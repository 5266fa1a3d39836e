"""How a site names a service: its URL, a reference to the shared secret, and how long to wait for an answer."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from penstock.domain.site.sections import duration
from penstock.drivers.secrets import REFERENCE
from penstock.kernel.frozen import dataclass
from penstock.toml.checks import Check, Place, matching, text

TIMEOUT, TIMEOUT_MOST = 5, 20
"""Seconds for one request. A step makes up to three requests, and a function call of two minutes up to five steps."""

URL_CHARS = 500
EXAMPLE = '{ url = "https://rack.example.com/penstock", secret = "secretsmanager:penstock/rack" }'


@dataclass(frozen=True)
class ServiceSettings:
    """The service's URL, the reference to the shared secret, and the seconds for one request."""

    url: str
    secret: str
    timeout: int = TIMEOUT

    @property
    def parts(self) -> SplitResult:
        """The parts of the URL."""
        return urlsplit(self.url)


def is_loopback(host: str) -> bool:
    """Whether a host is localhost or a loopback address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _url(value: object, place: Place) -> str:
    """A URL without credentials. It must be https, because the service's answers free slots."""
    before = len(place.faults)
    found = text(value, place, URL_CHARS).rstrip("/")
    if len(place.faults) > before:
        return ""
    why = _wrong_url(found)
    if why:
        place.fault(f"{place.label} {why}", 'like "https://rack.example.com/penstock"')
    return found


def _wrong_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("https", "http") or not host:
        return "is not an http or https URL with a host"
    if parts.scheme == "http" and not is_loopback(host):
        return "must be https; http is for a service on this machine only"
    if parts.username is not None or parts.password is not None:
        return "contains credentials; use `secret` instead"
    if parts.query or parts.fragment or "?" in url or "#" in url:
        return "must not have a query or a fragment"
    return None if url.isascii() and " " not in url else "contains characters that are not allowed in a URL"


_secret = matching(
    rf"{REFERENCE}|file:/[\w./@+-]+",
    "a reference to a secret",
    "like secretsmanager:penstock/rack, or file:/etc/rack.secret with the local cloud",
)

NEEDED: Mapping[str, Check] = {"url": _url, "secret": _secret}
OPTIONAL: Mapping[str, Check] = {"timeout": duration(TIMEOUT_MOST, f"{TIMEOUT_MOST} seconds")}
"""The keys of every service in a site file, and their checks."""
