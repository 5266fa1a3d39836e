"""The service of examples/http_well.py as a process of its own, and wells that ask it."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from penstock.drivers import MAKER
from penstock.drivers.http.units import HOME, SITE
from penstock.drivers.wells.http.well import HttpWell

EXAMPLE = Path(__file__).parents[2] / "examples" / "http_well.py"
FUNCTIONS = str(EXAMPLE.parents[1] / "functions")
SECRET = "a secret of at least thirty-two characters"
SURROUNDINGS = {"RACK": SECRET, SITE: "Penstock.eu-west-1", HOME: "/nowhere"}


class Program:
    """An example as a process of its own. It listens on a port that the system chose, until `end`."""

    def __init__(self, folder: Path, example: Path, secret: str, *words: str) -> None:
        command = [sys.executable, "-S", str(example), "0", *words]  # without anybody's packages: it needs none
        self._log = (folder / "service.log").open("w")
        self._process = subprocess.Popen(
            command,
            env={secret: SECRET, "PYTHONPATH": FUNCTIONS, "PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self._process.stdout
        self.url = self._process.stdout.readline().strip()

    def end(self) -> None:
        """Stop it."""
        self._process.terminate()
        self._process.wait()
        self._log.close()


class Service(Program):
    """The service of examples/http_well.py."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, EXAMPLE, "WELL_SECRET")

    def well(self, name: str = "rack", **settings: Any) -> HttpWell:
        """A well that shares nothing with others but the service."""
        return well(self.url, name, **settings)


def well(url: str, name: str = "rack", **settings: Any) -> HttpWell:
    """A well for a service at a URL."""
    return HttpWell({"url": url, "secret": "env:RACK", "timeout": "2s", **settings}, {**SURROUNDINGS, MAKER: name})


NOW = datetime(2026, 1, 1, tzinfo=UTC)
