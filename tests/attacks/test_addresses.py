"""What addresses an attacker gave the name of a service, so that a well talks to the machine's own services. [SEC-1]"""

from __future__ import annotations

import pytest

from penstock.drivers.http.transport import Service, _check
from penstock.kernel.errors import Misconfigured

HERE = Service("service.example", 443, is_tls=True)

METADATA = {
    "as it is": "169.254.169.254",
    "of EC2 over IPv6": "fd00:ec2::254",
    "mapped": "::ffff:169.254.169.254",
    "mapped, in hex": "::ffff:a9fe:a9fe",
    "compatible": "::169.254.169.254",
    "translated": "::ffff:0:a9fe:a9fe",
    "by NAT64": "64:ff9b::a9fe:a9fe",
    "by a site's NAT64 of 96 bits": "64:ff9b:1::a9fe:a9fe",
    "by a site's NAT64 of 64 bits": "64:ff9b:1:0:a9:fea9:fe00:0",
    "by a site's NAT64 of 56 bits": "64:ff9b:1:a9:fe:a9fe::",
    "by a site's NAT64 of 48 bits": "64:ff9b:1:a9fe:a9:fe00::",
    "by 6to4": "2002:a9fe:a9fe::1",
    "as a Teredo server": "2001:0:a9fe:a9fe::",
    "as a Teredo client": "2001:0:102:304:0:0:5601:5601",
}
ITSELF = {
    "as it is": "127.0.0.1",
    "over IPv6": "::1",
    "compatible": "::127.0.0.1",
    "mapped": "::ffff:127.8.9.1",
    "by NAT64": "64:ff9b::7f00:1",
    "by 6to4": "2002:7f00:1::",
    "any": "0.0.0.0",
    "any over IPv6": "::",
    "any by NAT64": "64:ff9b::",
    "link-local": "fe80::1%eth0",
    "multicast": "224.0.0.1",
    "multicast by 6to4": "2002:e000:1::",
}
OTHERS = ["10.1.2.3", "192.0.2.1", "2600:1f00::1", "64:ff9b::c000:201", "2002:c000:201::1", "fd12:3456::1"]


@pytest.mark.parametrize("address", [*METADATA.values(), *ITSELF.values()], ids=[*METADATA, *ITSELF])
def test_an_address_that_leads_to_the_machine_itself(address: str) -> None:
    with pytest.raises(Misconfigured, match="must not have"):
        _check(address, HERE)


@pytest.mark.parametrize("address", METADATA.values(), ids=METADATA.keys())
def test_metadata_even_where_the_machine_itself_is_allowed(address: str) -> None:
    with pytest.raises(Misconfigured, match="must not have"):
        _check(address, Service("localhost", 80, is_tls=False, is_local=True))


@pytest.mark.parametrize("address", OTHERS)
def test_other_addresses_are_fine(address: str) -> None:
    _check(address, HERE)


def test_the_machine_itself_where_that_is_allowed() -> None:
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        _check(address, Service("localhost", 80, is_tls=False, is_local=True))
