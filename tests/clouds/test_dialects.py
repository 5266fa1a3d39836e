"""Every argument in the table of dialects is one that libcloud's driver of that provider takes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from libcloud.compute.drivers.digitalocean import DigitalOcean_v2_NodeDriver
from libcloud.compute.drivers.openstack import OpenStack_2_NodeDriver
from libcloud.compute.providers import get_driver

from penstock.drivers.factories.libcloud.providers import PROVIDERS

CALLS = ("create_node", "list_nodes", "destroy_node")


def driver(name: str) -> Any:
    chosen = {"digitalocean": DigitalOcean_v2_NodeDriver, "openstack": OpenStack_2_NodeDriver}
    return chosen.get(name) or get_driver(name)


@pytest.mark.parametrize("name", PROVIDERS)
def test_arguments_are_there(name: str) -> None:
    made, spoken = driver(name), PROVIDERS[name]
    takes = {call: set(inspect.signature(getattr(made, call)).parameters) for call in CALLS}
    given = {spoken.location, *spoken.create, *spoken.must, *spoken.named}
    given |= {each.partition(".")[0] for each in (spoken.boot, spoken.tags) if each}
    assert given | {"name", "size", "image"} <= takes["create_node"]
    assert set(spoken.listing) <= takes["list_nodes"]
    assert set(spoken.destroy) <= takes["destroy_node"]
    assert spoken.console is None or hasattr(made, spoken.console)


def test_destroying_a_machine_does_not_wait_for_the_end() -> None:
    """The functions have two minutes, and libcloud's drivers for Azure and Google would wait for longer."""
    assert PROVIDERS["gce"].destroy == {"ex_sync": False}
    assert not any(PROVIDERS["azure_arm"].destroy.values())
