"""The service of examples/http_well.py in this process, with whatever a test has it do wrong."""

from __future__ import annotations

from typing import Any

from tests.wells.faulty import Asked as Asked
from tests.wells.faulty import Faulty, loaded
from tests.wells.service import EXAMPLE


class Rack(Faulty):
    """What it has is `units`."""

    def __init__(self) -> None:
        super().__init__(loaded(EXAMPLE).Rack())
        self.units: dict[str, dict[str, Any]] = self.service.units
