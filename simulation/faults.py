"""How likely each kind of fault is. A seed draws these rates once; at the end of every run all are zero."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from datetime import timedelta


@dataclass(frozen=True)
class Weather:
    """Each is a chance from 0 to 1; of what, the comment says."""

    switch: float = 0.0  # that another handler goes on at a port call
    conflict: float = 0.0  # that a commit is answered with False though nobody moved first
    lose: float = 0.0  # that a message, or the answer to a token, never arrives
    double: float = 0.0  # that a message comes once more, soon or much later
    late: float = 0.0  # that a message takes minutes
    die: float = 0.0  # that a handler dies before or after one of its effects
    forget: float = 0.0  # that what a dead handler was called with is not delivered again
    fail: float = 0.0  # that a driver's call raises a DriverError
    slow: float = 0.0  # that a driver is not done yet
    mute: float = 0.0  # that an agent never says hello, or late
    silent: float = 0.0  # that an agent is not heard of for a while
    rogue: float = 0.0  # that an agent acts again after its end
    kill: float = 0.0  # that a flow ends by itself, at a step of the run
    people: float = 0.0  # that a user or an operator does something, at a step of the run
    jump: float = 0.0  # that the clock makes a leap, at a step of the run
    lag: float = 0.0  # that a listing or the due index is behind
    throttle: float = 0.0  # that the table begins to refuse most requests, for minutes, at a step of the run
    outage: float = 0.0  # that SQS or Step Functions begins to refuse most requests, for minutes, at a step of the run
    again: float = 0.0  # that EventBridge calls twice, or minutes late
    apart: float = 0.0  # that the clock of a handler's process is some seconds off
    hosts: float = 0.0  # that a host goes down, forgets, leaves, or is silent, or a second one comes, at a call of it

    def without(self, kinds: Collection[str]) -> Weather:
        """The same weather with some kinds of trouble taken out."""
        return replace(self, **dict.fromkeys(kinds, 0.0))


KINDS = tuple(field.name for field in fields(Weather))

CALM = Weather()

_CHANCES = {
    "switch": (0.0, 0.05, 0.15, 0.4),
    "conflict": (0.0, 0.0, 0.02, 0.1),
    "lose": (0.0, 0.0, 0.02, 0.1),
    "double": (0.0, 0.02, 0.1),
    "late": (0.0, 0.05, 0.2),
    "die": (0.0, 0.0, 0.03, 0.1),
    "forget": (0.0, 0.3, 0.7),
    "fail": (0.0, 0.05, 0.3),
    "slow": (0.0, 0.2, 0.6),
    "mute": (0.0, 0.1, 0.3),
    "silent": (0.0, 0.2, 0.5),
    "rogue": (0.0, 0.2, 0.5),
    "kill": (0.0, 0.0, 0.001, 0.004),
    "people": (0.0, 0.01, 0.04),
    "jump": (0.0, 0.0, 0.005),
    "lag": (0.0, 0.5),
}


THROTTLE_CHANCES = (0.0, 0.0, 0.0005, 0.003)
OUTAGE_CHANCES = (0.0, 0.0, 0.001, 0.004)
REFUSING_SECONDS = (30, 120, 600)
"""How long a service refuses requests once it begins to."""

REFUSED = 0.8
"""How many of the requests it then refuses: DynamoDB never refuses all of them."""

AGAIN_CHANCES = (0.0, 0.0, 0.1, 0.3)

HOSTS_CHANCES = (0.0, 0.05, 0.1, 0.2)

APART_CHANCES = (0.0, 0.0, 0.2, 0.6)
APART_SECONDS = 2.0
"""How far a clock is off at most. Those of Lambda are within milliseconds: Amazon Time Sync Service."""

APART = timedelta(seconds=2 * APART_SECONDS)
"""By how much the clocks of two processes differ at most."""


def draw(dice: random.Random, more: random.Random) -> Weather:
    """The weather of a seed. Some seeds have none but interleaving, so that nothing hides behind the sweep.

    `more` are the dice for the faults that were added later: a seed keeps its site, and its other faults.
    """
    drawn = Weather(**{kind: dice.choice(chances) for kind, chances in _CHANCES.items()})
    if dice.random() < 0.2:
        return replace(CALM, switch=max(drawn.switch, 0.05), slow=drawn.slow)
    return replace(
        drawn,
        throttle=more.choice(THROTTLE_CHANCES),
        outage=more.choice(OUTAGE_CHANCES),
        again=more.choice(AGAIN_CHANCES),
        apart=more.choice(APART_CHANCES),
        hosts=more.choice(HOSTS_CHANCES),
    )
