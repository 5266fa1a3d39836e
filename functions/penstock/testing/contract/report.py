"""All checks of a driver, and what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.kernel.errors import DriverError
from penstock.testing.contract.checks import CHECKS
from penstock.testing.contract.rig import Broken, Rig


@dataclass(frozen=True)
class Found:
    """What came of one check: nothing is wrong, or what."""

    check: str
    wrong: str | None = None


def run(new: Callable[[], Rig], begins: Callable[[str], object] = lambda says: None) -> Iterator[Found]:
    """Each check with a rig of its own; what it made is destroyed after it. `begins` is told when a check begins."""
    for says, check in CHECKS.items():
        rig = new()
        begins(says)
        yield asked(says, lambda rig=rig, check=check: check(rig))  # type: ignore[misc]
        left = _left(rig)
        if left:
            yield Found("what the check made is destroyed after it", left)


def asked(says: str, call: Callable[[], object]) -> Found:
    """What came of one check."""
    return Found(says, _wrong(call))


def _left(rig: Rig) -> str | None:
    told = [_wrong(lambda unit=unit: rig.destroy(unit)) for unit in rig.used]  # type: ignore[misc]
    return next((each for each in told if each), None)


def _wrong(call: Callable[[], object]) -> str | None:
    try:
        call()
    except (Broken, DriverError) as error:
        return str(error) or type(error).__name__
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
