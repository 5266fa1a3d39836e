"""What drivers answer, checked: a field of the wrong type would only be noticed when its row is written. [UNIT-1]"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from penstock.domain.units.units import CleanProof
from penstock.kernel.errors import DriverError, RateLimited, Short, Shortage, Unknown
from penstock.ports import MachineNotice, NotYet, Ready

NOTES_BYTES = 16 * 1024
"""Bytes of a driver's notes, or of what it says of a machine, as JSON. A unit's row has room for them."""

LONGEST_PAUSE = 7 * 24 * 3600
"""The longest pause that a provider may ask for, in seconds."""

WRONG_ANSWER = "WrongAnswer"
"""The code under which it is counted that a driver answered something else than it should."""


def wrong_fields(error: DriverError) -> DriverError | None:
    """The failure to count instead of an error whose fields are not what they should be; None for a sound one."""
    wrong = _wrong_field(error)
    return _wrong(f"raised {type(error).__name__} with {wrong}") if wrong else None


def _wrong_field(error: DriverError) -> str | None:
    if isinstance(error, RateLimited) and not _is_pause(error.seconds, LONGEST_PAUSE):
        return f"seconds that are no number from 0 to {LONGEST_PAUSE}"
    if isinstance(error, RateLimited) and not isinstance(error.calls, str):
        return "calls that are no text"
    if isinstance(error, Short) and not _are_shortages(error.shortages):
        return "shortages that are none"
    if isinstance(error, Unknown) and not isinstance(error.code, str):
        return "a code that is no text"
    return _wrong_notes(error.notes)


def creation(done: object) -> Ready | NotYet:
    """The answer of `create`. Raises Unknown for any other."""
    if isinstance(done, NotYet):
        return _not_yet(done)
    if not isinstance(done, Ready):
        raise _wrong(f"returned {type(done).__name__} instead of Ready or NotYet")
    wrong = _wrong_ready(done)
    if wrong:
        raise _wrong(f"returned Ready with {wrong}")
    return done


def _wrong_ready(done: Ready) -> str | None:
    """What is wrong with what a driver made. Whether its metadata has room is said when it is sealed."""
    if not isinstance(done.metadata, Mapping):
        return "metadata that is no mapping"
    if not _are_texts(done.public) or not (done.proves is None or _are_texts(done.proves)):
        return "names that are no texts"
    if not _are_shortages(done.shortages):
        return "shortages that are none"
    if done.expires is not None and not _is_time(done.expires):
        return "a time that has no time zone, or is none"
    return _wrong_notes(done.notes)


def ending(done: object) -> CleanProof | NotYet:
    """The answer of `destroy` or `clean`. Raises Unknown for any other. [UNIT-2]"""
    if isinstance(done, NotYet):
        return _not_yet(done)
    if not isinstance(done, CleanProof):
        raise _wrong(f"returned {type(done).__name__} instead of CleanProof or NotYet")
    if not (isinstance(done.by, str) and isinstance(done.checked, str) and _is_time(done.time)):
        raise _wrong("returned CleanProof without who checked what, and when")
    if not _is_pause(done.lag, LONGEST_PAUSE):
        raise _wrong(f"returned CleanProof with a lag that is no number from 0 to {LONGEST_PAUSE}")
    return done


def _not_yet(done: NotYet) -> NotYet:
    if not _is_pause(done.after, LONGEST_PAUSE):
        raise _wrong(f"returned NotYet after {_describe_value(done.after)}, which is no number of seconds")
    if not (done.reason is None or isinstance(done.reason, str)):
        raise _wrong("returned NotYet with a reason that is no text")
    wrong = _wrong_notes(done.notes)
    if wrong:
        raise _wrong(f"returned NotYet with {wrong}")
    return done


def ids(found: object) -> frozenset[str]:
    """The answer of `list`. Raises Unknown for any other: a wrong list would destroy what is needed. [UNIT-1]"""
    if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
        raise _wrong(f"returned {type(found).__name__} instead of a list of ids")
    ids = frozenset(found)
    if not all(isinstance(id, str) for id in ids):
        raise _wrong("listed an id that is no text")
    return ids


def text(found: object) -> str | None:
    """A text or None. Raises Unknown for anything else."""
    if not (found is None or isinstance(found, str)):
        raise _wrong(f"returned {type(found).__name__} instead of a text")
    return found


def notice(found: object) -> MachineNotice | None:
    """The answer of `read_event`. Raises Unknown for any other."""
    if not (found is None or isinstance(found, MachineNotice)):
        raise _wrong(f"returned {type(found).__name__} instead of MachineNotice")
    return found


def _wrong_notes(notes: object) -> str | None:
    if notes is None:
        return None
    try:
        size = len(json.dumps(dict(notes))) if isinstance(notes, Mapping) else None
    except (TypeError, ValueError, RecursionError):
        size = None
    return None if size is not None and size <= NOTES_BYTES else f"notes that are no JSON object of {NOTES_BYTES} bytes"


def _is_pause(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _is_time(value: object) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None


def _are_texts(found: object) -> bool:
    return isinstance(found, Collection) and not isinstance(found, str) and all(isinstance(one, str) for one in found)


def _are_shortages(found: object) -> bool:
    return isinstance(found, Sequence) and all(
        isinstance(one, Shortage) and isinstance(one.scope, str) and isinstance(one.why, str) for one in found
    )


def _describe_value(value: object) -> str:
    return repr(value)[:50] if isinstance(value, int | float | str) else type(value).__name__


def _wrong(what: str) -> Unknown:
    return Unknown(f"the driver {what}", WRONG_ANSWER)
