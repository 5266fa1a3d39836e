"""One HTTP request over its own connection, with limits on time and size whatever the server does.

It does not follow redirects, and does not support proxies, cookies or compression. The IP address is checked after
connecting and before anything is sent, so that no host name can lead to an instance metadata service. [SEC-1]
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from threading import Timer

from penstock.drivers.http.protocol import BODY_BYTES, HEADER_BYTES
from penstock.kernel.errors import Misconfigured, Unknown
from penstock.kernel.frozen import dataclass

EC2_METADATA = ip_address("fd00:ec2::254")
"""EC2's instance metadata service over IPv6. Its other addresses are link-local."""


TRANSLATED = (
    (ip_network("::/96"), 0),  # IPv4-compatible (RFC 4291)
    (ip_network("::ffff:0:0/96"), 0),  # IPv4-mapped (RFC 4291)
    (ip_network("::ffff:0:0:0/96"), 0),  # IPv4-translated (RFC 2765)
    (ip_network("64:ff9b::/96"), 0),  # NAT64 (RFC 6052)
    (ip_network("64:ff9b:1::/48"), 0),  # NAT64 of a site (RFC 8215), of which any prefix may be 96 bits
    (ip_network("2002::/16"), 80),  # 6to4 (RFC 3056)
)
"""The IPv6 networks whose addresses lead to IPv4 addresses, and how many bits follow these."""

TEREDO = ip_network("2001::/32")

SITE_NAT64 = ip_network("64:ff9b:1::/48")


@dataclass(frozen=True)
class Service:
    """The address of the service. `is_local` permits loopback addresses."""

    host: str
    port: int
    is_tls: bool
    is_local: bool = False


@dataclass(frozen=True)
class Reply:
    """A response, before it is verified."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class _Connection(HTTPConnection):
    """A connection that another thread can cut, also during the TLS handshake."""

    def __init__(self, to: Service, seconds: float) -> None:
        super().__init__(to.host, to.port, timeout=seconds)
        self._to = to
        self.cut: socket.socket | None = None

    def connect(self) -> None:
        """Connect, and check the address before anything is sent."""
        made = socket.create_connection((self._to.host, self._to.port), self.timeout)
        self.sock = self.cut = made
        _check(made.getpeername()[0], self._to)
        if self._to.is_tls:
            context = ssl.create_default_context()
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            safe = context.wrap_socket(made, server_hostname=self._to.host, do_handshake_on_connect=False)
            self.sock = self.cut = safe
            safe.do_handshake()


def send(
    to: Service, method: str, target: str, headers: Mapping[str, str], body: bytes, seconds: float,
    most: int = BODY_BYTES,
) -> Reply:  # fmt: skip
    """Send a request and read its answer. Raises Unknown if there is none, Misconfigured for a forbidden address."""
    connection = _Connection(to, seconds)
    try:
        with _cut_off(connection, seconds):
            connection.request(method, target, body, dict(headers))
            return _read(connection, most)
    except (OSError, HTTPException, ValueError) as error:
        raise Unknown(f"no answer from {to.host}: {type(error).__name__}", "no-answer") from error
    finally:
        connection.close()


def _read(connection: _Connection, most: int) -> Reply:
    with connection.getresponse() as response:
        headers = {name.lower(): value for name, value in response.getheaders()}
        if sum(len(name) + len(value) for name, value in response.getheaders()) > HEADER_BYTES:
            raise HTTPException("its headers are too long")
        body = response.read(most + 1)
        if len(body) > most:
            raise Unknown(f"{connection.host} answered with more than {most} bytes", "too-big")
        return Reply(response.status, headers, body)


@contextmanager
def _cut_off(connection: _Connection, seconds: float) -> Iterator[None]:
    """Cut the connection after some seconds, because a socket's own timeout begins again with every byte."""

    def cut() -> None:
        if connection.cut:
            with suppress(
                OSError
            ):  # it may have ended. Called on the plain socket, because TLS state is not thread-safe
                socket.socket.shutdown(connection.cut, socket.SHUT_RDWR)

    timer = Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _check(address: str, to: Service) -> None:
    """Refuse loopback, link-local, multicast and metadata addresses, in every form. Raises Misconfigured."""
    shown = ip_address(address.partition("%")[0])
    for found in (shown, *_embedded(shown)):
        if found.is_loopback and to.is_local:
            return
        if _is_forbidden(found):
            raise Misconfigured(f"{to.host} has the address {shown}, which a service must not have")


def _is_forbidden(found: IPv4Address | IPv6Address) -> bool:
    is_special = found.is_loopback or found.is_link_local or found.is_multicast or found.is_unspecified
    return is_special or found == EC2_METADATA


def _embedded(found: IPv4Address | IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses that an IPv6 address leads to, if its network is translated."""
    if not isinstance(found, IPv6Address):
        return
    for network, after in TRANSLATED:
        if found in network:
            yield IPv4Address(int(found) >> after & 0xFFFFFFFF)
    if found in SITE_NAT64:
        yield from _embedded_in_prefix(int(found))
    if found in TEREDO:
        yield IPv4Address(int(found) >> 64 & 0xFFFFFFFF)
        yield IPv4Address(~int(found) & 0xFFFFFFFF)


def _embedded_in_prefix(bits: int) -> Iterator[IPv4Address]:
    """The IPv4 address behind a NAT64 prefix of 48, 56 or 64 bits. Bits 64 to 71 are left out (RFC 6052)."""
    without = bits >> 64 << 56 | bits & (1 << 56) - 1
    for length in (48, 56, 64):
        yield IPv4Address(without >> 120 - length - 32 & 0xFFFFFFFF)
