"""What differs from provider to provider, as a table. One that is not in it needs `boot_argument` in its settings.

An argument is named as create_node has it; with a dot, one entry of an argument that is a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.drivers.factories.libcloud.settings import Settings


@dataclass(frozen=True)
class Dialect:
    """How one provider's driver wants to be asked."""

    boot: str | None = None
    tags: str | None = None
    location: str = "location"
    is_text: bool = False  # sizes, images and locations go by name, not as objects
    boots_bytes: bool = False
    fails_late: bool = False  # a machine is accepted first, and found to have no place after
    ended: tuple[str, ...] = ("terminated",)  # states of machines that are gone and still listed
    console: str | None = None
    named: tuple[str, ...] = ()  # arguments that are lists of objects, of which only id or name is looked at
    arguments: Mapping[str, Any] = field(default_factory=dict)
    listing: Mapping[str, Any] = field(default_factory=dict)
    create: Mapping[str, Any] = field(default_factory=dict)
    must: Mapping[str, Any] = field(default_factory=dict)
    destroy: Mapping[str, Any] = field(default_factory=dict)


DIALECTS: Mapping[str, Dialect] = {
    "azure_arm": Dialect(
        boot="ex_customdata",
        tags="ex_tags",
        boots_bytes=True,
        ended=(),  # its driver calls a machine that is being deleted terminated
        listing={"ex_fetch_nic": False, "ex_fetch_power_state": False},
        create={"ex_use_managed_disks": True, "auth": None},
        must={"ex_os_disk_delete": True},
        destroy={"ex_destroy_nic": False, "ex_destroy_vhd": False, "ex_destroy_os_disk": False},
    ),
    "digitalocean": Dialect(boot="ex_user_data"),
    "gce": Dialect(
        boot="ex_metadata.startup-script",
        tags="ex_labels",
        is_text=True,
        console="ex_get_serial_output",
        listing={"ex_zone": "all"},
        must={"ex_disk_auto_delete": True},
        destroy={"ex_sync": False},
    ),
    "openstack": Dialect(
        boot="ex_userdata",
        tags="ex_metadata",
        location="ex_availability_zone",
        fails_late=True,
        console="ex_get_console_output",
        named=("networks", "ex_security_groups"),
        arguments={"api_version": "2.2"},  # the driver for 1.1 reads the first page of a list and no other
    ),
}


def dialect(settings: Settings) -> Dialect:
    """The dialect of a factory's provider."""
    return DIALECTS.get(settings.provider, Dialect())


def boot_argument(settings: Settings) -> str | None:
    """Where the boot script goes."""
    return settings.boot_argument or dialect(settings).boot


def tags_argument(settings: Settings) -> str | None:
    """Where tags go, if the provider has any."""
    return settings.tags_argument or dialect(settings).tags
