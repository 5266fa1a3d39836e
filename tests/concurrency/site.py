"""What there is to be had, and what jobs ask for: few slots, many claims, some over several pools."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from penstock.domain.commands import SubmitJob
from penstock.domain.users.users import PRIORITY, User
from penstock.testing.site import site_toml

SITE = site_toml(
    factories={"here": "process"},
    targets={"default": {"factory": "here"}},
    wells={"locks": "lock"},
    resources={
        "bench": {"well": "locks", "names": ["bench-1", "bench-2"]},
        "licence": {"well": "locks", "limit": 3},
        "rig": {"well": "locks", "limit": 4, "uses": {"vcpus": 3}},
        "farm": {"well": "locks", "limit": 2, "uses": {"vcpus": 8}},
    },
    quotas={"vcpus": 10},
)

ASKED = (
    (3, ["bench"]),
    (3, ["licence"]),
    (2, ["licence", "licence"]),
    (2, ["bench", "licence"]),
    (4, ["rig"]),
    (1, ["rig", "rig"]),
    (2, ["farm"]),
)
"""How often, and which resources. `farm` takes most of the vCPUs, so that `rig` would overtake it for ever."""

PRIORITIES = (0, 0, 0, 5, 9)

USER = User(name="ada", created=datetime(2026, 1, 1, tzinfo=UTC), version=1, privileges=(PRIORITY,))


def ask(dice: random.Random) -> SubmitJob:
    """What the next job asks for."""
    (wanted,) = dice.choices([types for _, types in ASKED], [often for often, _ in ASKED])
    named = {f"{kind}{number}": {"type": kind} for number, kind in enumerate(wanted)}
    return SubmitJob("#!/bin/sh\n", resources=named, priority=dice.choice(PRIORITIES))
