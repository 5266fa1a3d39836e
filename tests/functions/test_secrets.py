"""What drivers are told, and what a resource's job may know, is shown to nobody else. [SEC-1]"""

from __future__ import annotations

import pytest

from penstock.usecases.site import apply
from tests.functions.service import SITE, Service

TOLD = """
[resources.console]
well = "locks"
settings = { password = "swordfish" }
public = ["host"]
"""


@pytest.mark.parametrize("sort", ["resource-types", "wells", "factories", "targets"])
@pytest.mark.parametrize("who", ["ada", "root"])
def test_what_drivers_are_told_is_shown_to_operators_only(service: Service, sort: str, who: str) -> None:
    apply.apply(service.twin.on, "root", SITE + TOLD, "site.toml")
    listed = service.ask("GET", f"/v1/{sort}", as_=who).json["items"]
    shown = [service.ask("GET", f"/v1/{sort}/{entry['name']}", as_=who).json for entry in listed]
    for entry in [*listed, *shown]:
        assert ("settings" in entry["settings"]) is (who == "root" and sort != "targets")
    assert ("swordfish" in str(listed)) is ("swordfish" in str(shown)) is (who == "root" and sort == "resource-types")
