"""What is written for those who make a controller is what the factory does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from penstock.domain.site import parse
from penstock.domain.site.site import Site
from penstock.drivers import MAKER, Registry
from penstock.drivers.factories.hosts import HostsFactory
from penstock.drivers.factories.http import settings
from penstock.drivers.factories.http.factory import SHOWN
from penstock.drivers.http import openapi, protocol
from penstock.drivers.http.client import BUDGET
from penstock.drivers.http.protocol import HOSTS, WORKERS
from penstock.drivers.http.settings import TIMEOUT, TIMEOUT_MOST
from penstock.ports import Order, Switching, UnitContext
from tests.controllers.benches import FaultyBenches
from tests.controllers.lab import EXAMPLE, FaultyLab, factory
from tests.wells.service import NOW, SURROUNDINGS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operators/http.md").read_text()


def test_the_document_is_that_of_the_code_and_is_one() -> None:
    written = openapi.FACTORY_DOCUMENT.read_text()
    assert written == openapi.text(openapi.factory_document()), "python -m penstock.drivers.http.openapi writes it"
    validate(openapi.factory_document())


def documented(collection: str, unit: str) -> set[tuple[str, str]]:
    """The calls of a collection, by method and path."""
    return {
        (method.upper(), re.sub(r"\{unit}", unit, path))
        for path, item in openapi.factory_document()["paths"].items()
        for method in item
        if method != "parameters" and path.startswith(collection)
    }


def test_what_hosts_ask_for_is_in_the_document() -> None:
    benches = FaultyBenches("bench-7")
    settings = {"url": benches.url, "secret": "env:RACK", "console": True}
    made = HostsFactory(settings, {**SURROUNDINGS, MAKER: "lab"})
    made.with_context(UnitContext("bench-7", 1)).destroy("w-1", NOW)
    made.evidence("w-1")
    for is_on in (True, False):
        made.switch("bench-7", Switching(is_on, 1))
    benches.end()
    assert set(benches.asked) == documented(HOSTS, "bench-7")


def test_what_the_factory_asks_for_is_in_the_document(lab: FaultyLab) -> None:
    made = factory(lab.url)
    made.create(Order("w-1", "helios", "1", url="https://penstock.example.com", key="k" * 64))
    made.evidence("w-1")
    made.destroy("w-1", NOW)
    made.list()
    assert {(method, path.partition("?")[0]) for method, path in lab.asked} == documented(WORKERS, "w-1")


def test_a_host_is_switched_with_what_the_document_and_the_page_say() -> None:
    benches, heard = FaultyBenches("bench-7"), list[dict[str, object]]()
    switch = benches.service.on
    benches.service.on = lambda unit, order: heard.append(order) or switch(unit, order)
    made = HostsFactory({"url": benches.url, "secret": "env:RACK"}, {**SURROUNDINGS, MAKER: "lab"})
    made.switch("bench-7", Switching(is_on=True, serial=1))
    benches.end()
    schemas = openapi.factory_document()["components"]["schemas"]
    said = schemas["Switching"]
    assert set(heard[0]) == set(said["properties"]) == set(said["required"])
    page = (ROOT / "docs/operators/hosts.md").read_text()
    assert all(f"`{field}`" in page for field in heard[0])
    assert set(schemas["Switched"]["required"]) <= set(benches.service.status("bench-7"))
    assert {"power", "serial"} <= set(schemas["HostStatus"]["properties"])


def test_an_order_has_what_the_document_and_the_page_say(lab: FaultyLab) -> None:
    heard = list[dict[str, object]]()
    make = lab.service.create
    lab.service.create = lambda unit, order: heard.append(order) or make(unit, order)
    factory(lab.url).create(Order("w-1", "helios", "1", url="https://penstock.example.com", key="k" * 64))
    order = openapi.factory_document()["components"]["schemas"]["Order"]
    assert set(heard[0]) == set(order["properties"]) == set(order["required"])
    assert all(f"`{field}`" in PAGE for field in heard[0])


@pytest.mark.parametrize(
    "said",
    [
        f"`{TIMEOUT}s`", f"`{TIMEOUT_MOST}s`", f"{BUDGET:.0f} s", f"{protocol.SECRET_LEAST} characters",
        f"{protocol.BODY_BYTES // 1024} KiB", f"{settings.SETTINGS_BYTES // 1024} KiB", f"{settings.SETTINGS} entries",
        f"at most {SHOWN} strings", f"`{protocol.GONE}`", "for ten minutes",
    ],
)  # fmt: skip
def test_the_page_says(said: str) -> None:
    assert said in PAGE
    assert 2 * protocol.WINDOW == 600


@pytest.mark.parametrize("page", [PAGE, (ROOT / "docs/operators/hosts.md").read_text()])
def test_the_pages_sites_are_good(page: str) -> None:
    blocks = re.findall(r"```toml\n(.*?)```", page, re.S)
    assert blocks
    for block in blocks:
        tomllib.loads(block)
        site = parse.parse(block, "site.toml")
        assert isinstance(site, Site), site
        for maker in site.factories.values():
            assert Registry({}).complaints("factory", maker.driver, maker.settings) == []


def test_the_example_is_short() -> None:
    """What it imports is seen where it runs as a process of its own, without anybody's packages."""
    assert len(EXAMPLE.read_text().splitlines()) <= 100
