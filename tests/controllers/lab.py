"""The controller of examples/http_factory.py: as a process of its own, and in this process with what it does wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.drivers import MAKER
from penstock.drivers.factories.http.factory import HttpFactory
from penstock.drivers.http.protocol import WORKERS
from tests.wells.faulty import Faulty, loaded
from tests.wells.service import SURROUNDINGS, Program

EXAMPLE = Path(__file__).parents[2] / "examples" / "http_factory.py"


def factory(url: str, name: str = "lab", **settings: Any) -> HttpFactory:
    """A factory for a controller at a URL, which shares nothing with others but the controller."""
    given = {"url": url, "secret": "env:RACK", "timeout": "2s", **settings}
    return HttpFactory(given, {**SURROUNDINGS, MAKER: name})


class Lab(Program):
    """The example as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "lab"
        super().__init__(folder, EXAMPLE, "FACTORY_SECRET", str(self.folder))

    def factory(self) -> HttpFactory:
        """A factory that shares nothing with others but the controller."""
        return factory(self.url)


class FaultyLab(Faulty):
    """The example in this process. Its machines are folders alone, which `machines` has: nothing runs in them."""

    def __init__(self, folder: Path) -> None:
        module = loaded(EXAMPLE)
        module.kill_all = lambda *given: True
        service = module.Lab(folder)
        service.start = lambda unit, home, agent: None
        super().__init__(service, WORKERS)
        self.folder = folder

    @property
    def machines(self) -> list[str]:
        """The machines that there are."""
        return sorted(each.name for each in (self.folder / "machines").iterdir())
