"""What stands in examples/ and docs/operators/wells of the accounts well is good, and does what it says."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from penstock.domain.jobfile import parse as jobfile_parse
from penstock.domain.site import parse
from penstock.domain.site.site import Site
from penstock.drivers import MAKER, Registry
from penstock.drivers.wells.accounts import cleaner, well
from penstock.drivers.wells.accounts import settings as accounts
from penstock.drivers.wells.accounts.well import AccountsWell
from penstock.local import cloud
from penstock.ports import NotYet, Order, Ready, UnitContext
from tests.wells.service import NOW

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/operators/wells/accounts.md").read_text()


def check(text: str) -> None:
    site = parse.parse(text, "site.toml")
    assert isinstance(site, Site), site
    for maker in site.wells.values():
        assert Registry({}).complaints("well", maker.driver, maker.settings) == []


def test_the_site_and_the_job_are_good() -> None:
    check((ROOT / "examples/wells.toml").read_text())
    for block in re.findall(r"```toml\n(.*?)```", PAGE, re.S):
        check(block)
    file = jobfile_parse((ROOT / "examples/wells.sh").read_text(), "wells.sh")
    assert [each.type for each in file.resources] == ["project", "sandbox"]  # type: ignore[union-attr]


def test_the_site_that_lends_what_the_local_cloud_has_is_good() -> None:
    text = (ROOT / "examples/lent.toml").read_text()
    check(text)
    role, bucket = cloud.LENDING["sts_roles"], cloud.LENDING["s3_well"]
    assert text.count(f'role = "{role}"') == 2
    assert f'bucket = "{bucket.partition("/")[0]}"\nprefix = "{bucket.partition("/")[2]}"' in text


def test_the_page_has_the_bounds_of_the_code() -> None:
    assert f"within {cleaner.SECONDS} s" in PAGE
    assert f"{cleaner.WORDS} characters" in PAGE
    assert f"{well.PARTS} with {well.PART_CHARS} characters" in re.sub(r"\s+", " ", PAGE)
    assert accounts.CLEANINGS == 10


def test_the_example_empties_a_folder_and_says_what_differs(tmp_path: Path) -> None:
    command = [sys.executable, "-S", str(ROOT / "examples/clean_sandbox.py"), str(tmp_path)]
    made = AccountsWell({"command": command, "check": True}, {MAKER: "sandboxes", "PENSTOCK_HOME": str(tmp_path)})
    before = made.create(Order("r-1", "sandbox", "red"))
    assert isinstance(before, Ready)
    (tmp_path / "red" / "left").mkdir()
    (tmp_path / "red" / "left" / "over").write_text("x")
    notes = {**dict(before.notes or {}), "round": "1", "done": 0}
    cleaned = made.with_context(UnitContext("red", 1, notes)).destroy("r-1", NOW)
    assert isinstance(cleaned, NotYet)
    assert list((tmp_path / "red").iterdir()) == []
    done = made.with_context(UnitContext("red", 1, json.loads(json.dumps(cleaned.notes)))).destroy("r-1", NOW)
    assert "the folder red is empty" in str(done)
