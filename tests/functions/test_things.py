"""What is said of named things, and to whom."""

from __future__ import annotations

from penstock.api.jobs import show
from penstock.api.site import entries
from penstock.domain.pools.choices import Choice
from penstock.domain.pools.pools import Need
from penstock.domain.site.site import NamedThing, ResourceType, Site
from tests.domain.helpers import job

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


def test_a_job_shows_what_it_chooses() -> None:
    needs = (
        Need(1, 1, "any", "bench", "resource/bench", "locks"),
        Need(2, 1, "one", "bench", "resource/bench", "locks", choice=Choice("rack == 4", exclusive=True)),
        Need(0, 0, "worker", "u", "target/u", "f", choice=Choice("rack == 3")),
    )
    shown = show(job(needs=needs), [])
    assert [(one.name, one.choice) for one in shown.resources] == [("any", ""), ("one", "rack == 4 for itself")]
    assert shown.host == "rack == 3"
    assert show(job(), []).host is None
