"""What only Azure needs: a fix of libcloud's driver, and the network card that it makes beside a machine."""

from __future__ import annotations

import json
from typing import Any

SUFFIX = "-nic"
"""libcloud names the card after the machine."""


def mended(driver: Any) -> Any:
    """libcloud's Azure driver puts custom data into JSON as bytes, which json refuses. Here it is text."""
    driver.connection.encode_data = lambda data: json.dumps(data, default=lambda each: each.decode("ascii"))
    return driver


def cards(driver: Any, group: str) -> list[tuple[str, Any]]:
    """The network cards in a resource group, by the names of the machines that they were made for.

    A card is made before its machine, and outlives it: a machine that was never made may have left one.
    """
    found = driver.ex_list_nics(resource_group=group)
    return [(card.name[: -len(SUFFIX)], card) for card in found if (card.name or "").endswith(SUFFIX)]
