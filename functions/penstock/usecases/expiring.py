"""What the sweep does with rows that nobody waits for: artifacts without owners go, and their bytes after them. [ART-2]

It is the last that a sweep does, and bounded, so that nothing else ever waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from aws_lambda_powertools import Logger

from penstock.domain import metrics
from penstock.kernel.rows import Key
from penstock.system import System
from penstock.usecases import archiving, dissolving, evicting, inventory, owning, pinning

AT_ONCE = 300
"""How many overdue rows one sweep looks at: some seconds' work. The rest are the next one's."""

WITHIN = timedelta(seconds=30)
"""After how long a sweep looks at no more of them: a log may take some seconds."""

log = Logger(child=True)


@dataclass
class Tidied:
    """What came of one sweep."""

    moved: int = 0
    failed: int = 0


def tidy(on: System) -> Tidied:
    """Move on what is overdue. What fails for one row does not stop the others."""
    done, start = Tidied(), on.world.now()
    for kind, key in on.store.overdue(on.world.now(), AT_ONCE, later=True):
        if on.world.now() - start >= WITHIN:
            break
        try:
            nudge(on, kind, key)
            done.moved += 1
        except Exception:
            log.exception("what is to go could not be moved on", extra={"kind": kind, "key": list(key)})
            done.failed += 1
    try:
        inventory.take(on)
    except Exception:
        log.exception("the store could not be compared with the rows")
        on.metrics.add(metrics.STORE_UNLISTED)
    on.metrics.add(metrics.TO_TIDY, done.moved + done.failed)
    return done


def nudge(on: System, kind: str, key: Key) -> None:
    """Move on one row, by its kind."""
    act = NUDGES.get(kind)
    if act:
        act(on, key.pk.partition("#")[2], key.sk.partition("#")[2])


def _volume(on: System, id: str) -> None:
    """Each of the two looks whether it is time for it."""
    owning.late(on, id)
    owning.destroy(on, id)


NUDGES: Mapping[str, Callable[[System, str, str], None]] = {
    "archive": lambda on, id, _: archiving.look(on, id),
    "artifact": lambda on, id, _: owning.forget(on, id),
    "volume": lambda on, id, _: _volume(on, id),
    "retention": lambda on, id, _: dissolving.look(on, id),
    "cache": lambda on, owner, place: evicting.run_out(on, owner, place),
    "pin": lambda on, id, by: pinning.run_out(on, id, by),
}
