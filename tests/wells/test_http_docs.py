"""What is written for those who make a service is what the well does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from openapi_spec_validator import validate

from penstock.domain.site import parse
from penstock.domain.site.site import Site
from penstock.drivers import Registry
from penstock.drivers.http import errors, openapi, protocol
from penstock.drivers.http.client import BUDGET
from penstock.drivers.http.settings import TIMEOUT, TIMEOUT_MOST
from penstock.ports import Order, UnitContext
from tests.wells.rack import Rack
from tests.wells.service import EXAMPLE, NOW, well

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operators/wells/http.md").read_text()


def test_the_document_is_that_of_the_code_and_is_one() -> None:
    assert openapi.DOCUMENT == ROOT / "docs/operators/wells/http.openapi.json"
    assert openapi.DOCUMENT.read_text() == openapi.text(openapi.document()), (
        "python -m penstock.drivers.http.openapi writes it"
    )
    validate(openapi.document())


def test_what_the_well_asks_for_is_in_the_document(rack: Rack) -> None:
    made = well(rack.url)
    made.with_context(UnitContext("1", 1)).create(Order("r-1", "project", "1"))
    made.clean("r-1", NOW)
    made.destroy("r-1", NOW)
    made.list()
    known = {
        (method.upper(), re.sub(r"\{unit}", "r-1", path))
        for path, item in openapi.document()["paths"].items()
        for method in item
        if method != "parameters"
    }
    assert {(method, path.partition("?")[0]) for method, path in rack.asked} == known


@pytest.mark.parametrize(
    "said",
    [
        *errors.CODES, protocol.TIMESTAMP, protocol.REQUEST_ID, protocol.SIGNATURE, f"{protocol.WINDOW} s",
        f"{protocol.METADATA_BYTES // 1024} KiB", f"{protocol.BODY_BYTES // 1024} KiB", f"`{TIMEOUT}s`",
        f"`{TIMEOUT_MOST}s`", f"{BUDGET:.0f} s", f"{protocol.SECRET_LEAST} characters", *protocol.STATES,
    ],
)  # fmt: skip
def test_the_page_says(said: str) -> None:
    assert said in PAGE


def test_the_pages_sites_are_good() -> None:
    blocks = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    assert blocks
    for block in blocks:
        tomllib.loads(block)
        site = parse.parse(block, "site.toml")
        assert isinstance(site, Site), site
        for maker in site.wells.values():
            assert Registry({}).complaints("well", maker.driver, maker.settings) == []


def test_the_example_is_short() -> None:
    """What it imports is seen where it runs as a process of its own, without anybody's packages."""
    assert len(EXAMPLE.read_text().splitlines()) <= 65
