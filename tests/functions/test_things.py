"""What is said of named things, and to whom."""

from __future__ import annotations

from penstock.api.site import entries
from penstock.domain.site.site import NamedThing, ResourceType, Site

BENCH = ResourceType("bench", "locks", 1, ("b1",), things={"b1": NamedThing({"rack": "4"}, {"password": "x"})})
SITE = Site(resources={"bench": BENCH, "plain": ResourceType("plain", "locks", 1)})


def test_everybody_sees_labels_and_only_operators_what_else_a_things_jobs_are_told() -> None:
    """SEC-1: it may be a password."""
    shown = {
        whole: [entry.settings["things"] for entry in entries(SITE, "resource-types", whole=whole)]
        for whole in (True, False)
    }
    assert shown == {
        True: [{"b1": {"labels": {"rack": "4"}, "metadata": {"password": "x"}}}, {}],
        False: [{"b1": {"labels": {"rack": "4"}}}, {}],
    }
