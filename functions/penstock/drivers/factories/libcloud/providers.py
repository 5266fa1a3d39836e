"""How providers differ, as a table. A provider that is not in it needs the setting `boot_argument`.

Arguments have the names that create_node gives them. A name with a dot is one entry of an argument that is a table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from penstock.kernel.frozen import dataclass


@dataclass(frozen=True)
class Provider:
    """How to call one provider's driver."""

    boot: str | None = None
    tags: str | None = None
    location: str = "location"
    is_text: bool = False  # sizes, images and locations are names, not objects
    boots_bytes: bool = False
    fails_late: bool = False  # accepts a request before it has found a place for the machine
    ended: tuple[str, ...] = ("terminated",)  # states of machines that are gone but still listed
    console: str | None = None
    named: tuple[str, ...] = ()  # arguments that are lists of objects with an id and a name
    arguments: Mapping[str, Any] = field(default_factory=dict)
    listing: Mapping[str, Any] = field(default_factory=dict)
    create: Mapping[str, Any] = field(default_factory=dict)
    must: Mapping[str, Any] = field(default_factory=dict)
    destroy: Mapping[str, Any] = field(default_factory=dict)


PROVIDERS: Mapping[str, Provider] = {
    "azure_arm": Provider(
        boot="ex_customdata",
        tags="ex_tags",
        boots_bytes=True,
        ended=(),  # its driver says terminated while a machine is still being deleted
        listing={"ex_fetch_nic": False, "ex_fetch_power_state": False},
        create={"ex_use_managed_disks": True, "auth": None},
        must={"ex_os_disk_delete": True},
        destroy={"ex_destroy_nic": False, "ex_destroy_vhd": False, "ex_destroy_os_disk": False},
    ),
    "digitalocean": Provider(boot="ex_user_data"),
    "gce": Provider(
        boot="ex_metadata.startup-script",
        tags="ex_labels",
        is_text=True,
        console="ex_get_serial_output",
        listing={"ex_zone": "all"},
        must={"ex_disk_auto_delete": True},
        destroy={"ex_sync": False},
    ),
    "openstack": Provider(
        boot="ex_userdata",
        tags="ex_metadata",
        location="ex_availability_zone",
        fails_late=True,
        console="ex_get_console_output",
        named=("networks", "ex_security_groups"),
        arguments={"api_version": "2.2"},  # the driver for 1.1 reads only the first page of a list
    ),
}

AZURE_CARD_SUFFIX = "-nic"
"""libcloud names an Azure network card after its machine, with this suffix."""


def fix_azure(driver: Any) -> Any:
    """Fix libcloud's Azure driver, which puts custom data into JSON as bytes: encode them as text."""
    driver.connection.encode_data = lambda data: json.dumps(data, default=lambda each: each.decode("ascii"))
    return driver


def azure_cards(driver: Any, group: str) -> list[tuple[str, Any]]:
    """The network cards in an Azure resource group, with the names of their machines.

    A card is made before its machine and outlives it, so a failed creation may leave one.
    """
    found = driver.ex_list_nics(resource_group=group)
    return [
        (card.name[: -len(AZURE_CARD_SUFFIX)], card) for card in found if (card.name or "").endswith(AZURE_CARD_SUFFIX)
    ]
