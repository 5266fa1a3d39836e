"""A controller of hosts: what it writes anew is `written`, by host and fence, and which of them are `lit`."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from penstock.drivers.http.protocol import HOSTS
from penstock.drivers.http.serving import Refused
from tests.wells.faulty import Faulty


class Machines:
    """Hosts whose image is written anew at once."""

    def __init__(self, *names: str) -> None:
        self.hosts: dict[str, dict[str, Any]] = {
            name: {"unit": name, "state": "ready", "fence": 0, "digest": None, "power": "off", "serial": 0}
            for name in names
        }
        self.printed: dict[str, str] = {}
        self._writing = Lock()

    def console(self, unit: str) -> str:
        return self.printed.get(unit, "")

    def status(self, unit: str) -> Mapping[str, Any]:
        if unit not in self.hosts:
            raise Refused(404, "not-found", f"there is no {unit}")
        return self.hosts[unit]

    def clean(self, unit: str, lease: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.status(unit)["fence"] > lease["fence"]:
            raise Refused(409, "stale-fence", "another lease has it")
        clean = {"state": "clean", "fence": lease["fence"], "digest": "helios-2.0"}
        with self._writing:  # who asks again, while it is written or later, begins nothing new
            if not clean.items() <= self.hosts[unit].items():
                self.write(unit)
                self.hosts[unit].update(clean)
        proof = {"checked": "its disk was written with helios-2.0", "digest": "helios-2.0"}
        return {**self.hosts[unit], "proof": proof}

    def on(self, unit: str, order: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._switch(unit, order, "on")

    def off(self, unit: str, order: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._switch(unit, order, "off")

    def _switch(self, unit: str, order: Mapping[str, Any], power: str) -> Mapping[str, Any]:
        if self.status(unit)["serial"] > order["serial"]:
            raise Refused(409, "stale-serial", "a later order was given")
        self.hosts[unit].update(power=power, serial=order["serial"])
        return self.hosts[unit]

    def write(self, unit: str) -> None:
        """Write the image of a host."""


class FaultyBenches(Faulty):
    """The controller in this process, with whatever a test has it do wrong."""

    def __init__(self, *names: str) -> None:
        super().__init__(Machines(*names), HOSTS)

    @property
    def written(self) -> dict[str, int]:
        """The hosts that are clean, and after which lease."""
        return {name: host["fence"] for name, host in self.service.hosts.items() if host["state"] == "clean"}

    @property
    def lit(self) -> list[str]:
        """The hosts that are on."""
        return [name for name, host in self.service.hosts.items() if host["power"] == "on"]
