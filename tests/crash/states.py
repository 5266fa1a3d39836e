"""Two runs that come to the same state go on alike, so one of them is enough: what that state is, as a digest.

It is taken where no function runs. Functions keep nothing between two calls that another could not have read anew, so
what they have in memory is no part of it. Left out is also what nobody acts upon: ids of messages and receipts, how
often a message was received, and when a flow's steps were taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from ministack.services import dynamodb, s3, sqs

if TYPE_CHECKING:
    from tests.crash.life import Life


def digest(life: Life) -> bytes:
    """Everything that the rest of a run depends on: the account, what is outside, users, agents and the clock."""
    seen = sorted(life.watch.fences.items()), sorted(life.watch.ends.items())
    world = life.site.world.time, hash(life.site.world.dice.getstate())
    parts = _account(life), _outside(life), _people(life), seen, world
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


def _account(life: Life) -> tuple[Any, ...]:
    with life.site.unseen():
        rows = [
            (pk, sorted(items.items())) for pk, items in sorted(dynamodb._tables["state"]["items"].items()) if items
        ]
        messages = [
            (name, [(each["body"], each["visible_at"], each["message_attributes"]) for each in queue["messages"]])
            for name, queue in sorted(sqs._queues.items())
        ]
        objects = sorted((name, each["etag"]) for name, each in s3._buckets["outputs"]["objects"].items())
    flows = life.site.flows
    tasks = [task.event for task in flows.tasks]
    return rows, messages, objects, tasks, sorted(map(_walked, flows.parked()), key=repr), flows.stand()


def _outside(life: Life) -> list[Any]:
    hands = life.site.drivers.hands.values()
    units = [
        (sorted(hand.made.items()), sorted(hand.soiled.items()), sorted(hand.asked.items()), hand.slow, hand.lasting)
        for hand in hands
    ]
    return [*units, life.site.hub.state()]


def _people(life: Life) -> tuple[Any, ...]:
    named = (life.held, life.held_names, life.mute, life.silent, life.failing, life.broken)
    told = [sorted(each) for each in named]  # type: ignore[type-var]
    script = life.script.gi_frame
    where = (
        (script.f_lasti, {name: each for name, each in script.f_locals.items() if each is not life}) if script else ()
    )
    return (
        told,
        life.asks,
        sorted(life.told),
        life.agents,
        life.writes_outputs,
        life.script_over,
        life.is_late,
        life.asked,
        where,
    )


def _walked(frame: FrameType | None) -> list[Any]:
    """Where a flow stands: each function that it is in, how far, and what is counted there."""
    return [(each.f_code.co_name, each.f_lasti, _counts(each)) for each in _frames(frame)]


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame:
        yield frame
        frame = frame.f_back


def _counts(frame: FrameType) -> list[Any]:
    plain = (int, dict)
    found = [(name, each) for name, each in frame.f_locals.items() if isinstance(each, plain)]
    return sorted((name, repr(each)) for name, each in found if isinstance(each, int) or _is_counter(each))


def _is_counter(each: dict[Any, Any]) -> bool:
    return bool(each) and all(isinstance(value, int) for value in each.values())
