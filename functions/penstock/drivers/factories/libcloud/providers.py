"""How providers differ, as a table. A provider that is not in it needs the setting `boot_argument`.

Arguments have the names that create_node gives them. A name with a dot is one entry of an argument that is a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from penstock.kernel.frozen import dataclass


@dataclass(frozen=True)
class Disk:
    """A listed disk. `extra` has its tags, if the cloud shows some."""

    id: str
    name: str
    extra: Mapping[str, Any] = field(default_factory=dict)


def listed_disks(driver: Any) -> list[Disk]:
    """All disks of the account; none if libcloud cannot list this provider's."""
    from libcloud.compute.base import NodeDriver

    if type(driver).list_volumes is NodeDriver.list_volumes:
        return []
    return [Disk(str(each.id), str(each.name or ""), each.extra or {}) for each in driver.list_volumes()]


def google_disks(driver: Any) -> list[Disk]:
    """All disks of a Google project, on all pages.

    libcloud's list_volumes reads one page, and fails at a disk that is in a region instead of a zone.
    """
    places = driver.connection.request_aggregated_items("disks").get("items", {}).values()
    return [Disk(str(each["id"]), each["name"], each) for place in places for each in place.get("disks", ())]


def no_disks(driver: Any) -> list[Disk]:
    """For clouds where no disk says for which machine it was made."""
    del driver
    return []


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
    mappings: str | None = None  # the argument that lists volumes to make with a machine
    disks: Callable[[Any], Sequence[Disk]] = listed_disks
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
    "digitalocean": Provider(boot="ex_user_data", disks=no_disks),  # create_node makes no volumes
    "gce": Provider(
        boot="ex_metadata.startup-script",
        tags="ex_labels",
        is_text=True,
        console="ex_get_serial_output",
        disks=google_disks,
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
        mappings="ex_blockdevicemappings",
        disks=no_disks,  # Nova gives its volumes no name, or one of the server's id, and no metadata
        arguments={"api_version": "2.2"},  # the driver for 1.1 reads only the first page of a list
    ),
}

AZURE_CARD_SUFFIX = "-nic"
"""libcloud names an Azure network card after its machine, with this suffix."""


def ending_with_machine(mappings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """OpenStack's block devices, so that what is made for a machine is deleted with it. By default Nova keeps it.

    A volume that existed before stays as the site says: it is not ours.
    """
    return [
        dict(each) if each.get("source_type") == "volume" else {**each, "delete_on_termination": True}
        for each in mappings
    ]


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
