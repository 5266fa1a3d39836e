"""A call that ends at any of its lines, as a function that dies does: before it has acted, after it, and in between.

A line of the driver's own files raises what the driver cannot know. What it has done by then is done, and its answer is
lost. That `finally` and `with` still run is the difference to a real death.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any


class Died(BaseException):
    """The function died here."""


def sources(kind: type) -> str:
    """Where a driver's own code is: its package's folder, or its file."""
    module = sys.modules[kind.__module__]
    path = Path(str(module.__file__)).resolve()
    return str(path.parent) + "/" if module.__package__ else str(path)


def lines(call: Callable[[], Any], where: str) -> int:
    """How many lines of its own a call takes."""
    return _traced(call, where, None)


def cut(call: Callable[[], Any], where: str, at: int) -> None:
    """Begin a call, and let it die at a line."""
    _traced(call, where, at)


def points(count: int, most: int) -> list[int]:
    """At which lines to let a call die: all of them, or as many as may be, evenly, with the first and the last."""
    if count <= most or most < 2:
        return list(range(1, 1 + min(count, most)))
    return sorted({1 + round(each * (count - 1) / (most - 1)) for each in range(most)})


def _traced(call: Callable[[], Any], where: str, at: int | None) -> int:
    count = 0

    def inside(frame: FrameType, event: str, given: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
            if count == at:
                raise Died
        return inside

    def enter(frame: FrameType, event: str, given: Any) -> Any:
        return inside if _path(frame).startswith(where) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        call()
    except Died:
        pass
    finally:
        sys.settrace(before)
    return count


_known: dict[str, str] = {}


def _path(frame: FrameType) -> str:
    name = frame.f_code.co_filename
    if name not in _known:
        _known[name] = str(Path(name).resolve())
    return _known[name]
