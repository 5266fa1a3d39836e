"""docs/operators/wells/postgres.md and the examples say what is so."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from penstock.domain.jobfile import JobFile
from penstock.domain.jobfile import parse as jobfile_parse
from penstock.domain.site import parse
from penstock.domain.site.site import Site
from penstock.drivers import Registry
from penstock.drivers.wells.postgres import errors, session
from penstock.drivers.wells.postgres.settings import Options, Settings
from penstock.drivers.wells.postgres.well import PostgresWell
from tests.postgres.cluster import SETUP, Cluster
from tests.postgres.helpers import gone, made, well

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/operators/wells/postgres.md").read_text()
EXAMPLE = (ROOT / "examples" / "postgres.toml").read_text()


def rows(heading: str) -> dict[str, str]:
    """The names and last columns of the table below a heading."""
    part = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", part, re.M))


def test_the_examples_are_a_site_and_a_job_for_it() -> None:
    site = parse.parse(EXAMPLE, "examples/postgres.toml")
    assert isinstance(site, Site), site
    maker = site.wells["databases"]
    assert Registry({}).complaints("well", maker.driver, maker.settings) == []
    job = jobfile_parse((ROOT / "examples" / "database.sh").read_text(), "examples/database.sh")
    assert isinstance(job, JobFile)
    assert [PostgresWell.objections(ask.options, maker.settings, {}) for ask in job.resources] == [[]]


def test_the_site_of_the_page_is_one_but_for_its_certificate() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", TEXT, re.S)
    site = parse.parse(example, "docs/operators/wells/postgres.md")
    assert isinstance(site, Site), site
    complaints = Registry({}).complaints("well", "postgres", site.wells["databases"].settings)
    assert [each.partition(":")[0] for each in complaints] == ["`postgres.ca` is not a certificate"]


def test_every_setting_is_in_the_table_and_no_other() -> None:
    told, given = rows("Settings"), Settings("h", "u", "p")
    assert sorted(told) == sorted(field.name for field in fields(Settings))
    assert (told["port"], told["database"], told["connections"]) == ("5432", '`"postgres"`', str(given.connections))
    assert told["statement_timeout"] == told["idle_timeout"] == f'`"{given.statement_timeout // 60}m"`'
    assert given.statement_timeout == given.idle_timeout


def test_every_option_is_in_the_table_and_no_other() -> None:
    assert sorted(rows("Options of a job")) == sorted(field.name for field in fields(Options))


def test_every_state_and_every_limit_is_told() -> None:
    part = TEXT.partition("## Errors\n")[2].partition("\n## ")[0]
    assert [state for state in errors.STATES if state not in part] == []
    assert f"for {errors.FULL_SECONDS} seconds" in part
    assert f"for {errors.STARTING_SECONDS} seconds" in part
    limits = [session.CONNECT_SECONDS, session.STATEMENT_SECONDS, 10, session.DROP_SECONDS, session.CALL_SECONDS]
    said = part.partition("Connecting may take")[2]
    assert limits == [int(number) for number in re.findall(r"\d+", said)]


def test_the_tests_run_with_the_admin_of_the_page() -> None:
    (told,) = re.findall(r"```sql\n(.*?)```", TEXT, re.S)
    assert sorted(told.replace("…", "{password}").split(";\n")) == sorted(SETUP.lstrip("\n").split(";\n"))


@pytest.mark.xdist_group("postgres")
def test_a_job_is_told_what_the_page_says(cluster: Cluster) -> None:
    driver = well(cluster, sslmode="verify-full", ca=cluster.ca)
    part = TEXT.partition("## Metadata\n")[2].partition("\nAfter")[0]
    assert sorted(made(driver)) == sorted(re.findall(r"`(\w+)`", part))
    gone(driver)
