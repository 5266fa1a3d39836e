"""A run that parts at its calls: each fault is what happens in a process of its own, which goes on from there.

What is before a call is the same for all faults at it and for all later ones, so it is done once.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import NoReturn

from tests.crash.faults import Fault, Mode
from tests.crash.life import Life
from tests.crash.states import digest


@dataclass
class Trail:
    """The states that a run came to, each with the minute in which it did."""

    states: dict[str, int] = field(default_factory=dict)

    def rests(self, life: Life) -> None:
        """Note where a run is."""
        self.states.setdefault(digest(life).hex(), life.minutes)


@dataclass(frozen=True)
class End:
    """How a run ended: after how many minutes, what was broken, and the states that it came to on its way."""

    minutes: int = 0
    broken: str = ""
    states: dict[str, int] = field(default_factory=dict)


class Branches:
    """Says at each call what goes wrong: in the run itself nothing, in a branch of it what that is there to try.

    A branch that comes to a state from which a run is known to have gone well, `well` the run without faults, ends
    there: it would go on like that one.
    """

    def __init__(self, faults: Iterable[Fault], well: End, *, first: bool = False) -> None:
        self.ends: dict[Fault, End] = {}
        self._left: dict[str, int] = {}
        self._trail = Trail()
        self._went(well)
        self.is_one = False
        self._first = first
        self._faults: dict[int, list[Fault]] = {}
        for fault in faults:
            self._faults.setdefault(fault.number, []).append(fault)

    def at(self, number: int) -> Mode | None:
        """Part, once for each fault that is wanted at this call."""
        for fault in self._faults.pop(number, ()):
            if self._first and any(end.broken for end in self.ends.values()):
                return None
            reader, self._writer = os.pipe()
            child = os.fork()
            if not child:
                gc.disable()  # it would touch, and so copy, all that the two processes share
                os.close(reader)
                self.is_one, self._faults = True, {}
                return fault.mode
            os.close(self._writer)
            self.ends[fault] = _read(reader)
            self._went(self.ends[fault])
            os.waitpid(child, 0)
        return None

    def rests(self, life: Life) -> None:
        """Look where a branch is, and end it where it is known how it would go on."""
        if self.is_one:
            state = digest(life).hex()
            if state in self._left:
                self.end(life.minutes + self._left[state])
            self._trail.states.setdefault(state, life.minutes)

    def _went(self, end: End) -> None:
        """From all states of a run that went well it is known how it goes on, and for how long."""
        if not end.broken:
            for state, minute in end.states.items():
                self._left.setdefault(state, end.minutes - minute)

    def end(self, minutes: int, broken: str = "") -> NoReturn:
        """End this branch, and tell the run that it parted from."""
        with open(self._writer, "w") as told:
            json.dump(asdict(End(minutes, broken, self._trail.states)), told)
        os._exit(0)

    def missed(self) -> int:
        """How many of the calls the run never came to."""
        return len(self._faults)


def _read(pipe: int) -> End:
    with open(pipe) as told:
        text = told.read()
    return End(**json.loads(text)) if text else End(broken="its process ended and told nothing")
