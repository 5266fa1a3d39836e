"""The list of all drivers that are installed, for people. No function needs it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from penstock.drivers import FACTORIES, GROUPS, WELLS, _theirs, load
from penstock.kernel.errors import Misconfigured

FLAGS = ("reusable", "quarantines", "makes_nothing", "hosts")
"""What a driver's class may say of its units."""

OURS = {"factory": FACTORIES, "well": WELLS}


@dataclass(frozen=True)
class InstalledDriver:
    """An installed driver: its class, as `module:name`, and the package that brought it."""

    kind: str
    name: str
    where: str
    package: str

    def details(self) -> dict[str, Any]:
        """All fields, the flags that its class sets, and why it cannot be loaded, if so."""
        says, trouble = list[str](), None
        try:
            of = load(self.kind, self.name)
            says = [each for each in FLAGS if getattr(of, each, False)]
        except Misconfigured as error:
            trouble = str(error)
        return {**asdict(self), "says": says, "trouble": trouble}


def installed_drivers() -> list[InstalledDriver]:
    """All drivers, Penstock's own first."""
    found = [InstalledDriver(kind, name, where, "penstock") for kind in GROUPS for name, where in OURS[kind].items()]
    for kind in GROUPS:
        for name, entry in sorted(_theirs(kind).items()):
            package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else ""
            found += [] if name in OURS[kind] else [InstalledDriver(kind, name, entry.value, package)]
    return found
