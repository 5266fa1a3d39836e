"""docs/users/job-files.md lists every key of a job file, and the limits that the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.agent.bmat import parser
from penstock.domain.jobfile import JobFile, parse
from penstock.domain.jobfile.matrix import AXES, PLACES
from penstock.domain.jobfile.parse import KEYS
from penstock.kernel import limits

ROOT = Path(__file__).parents[2]
USERS = ROOT / "docs/users"
PAGE = (USERS / "job-files.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text below a heading, up to the next one of the same level."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_the_table_of_keys_has_each_key_once() -> None:
    assert sorted(re.findall(r"^\| `(\w+)` \|", section("Keys"), re.MULTILINE)) == sorted(KEYS)


def test_the_table_of_keys_marks_those_that_are_required() -> None:
    required = re.findall(r"^\| `(\w+)` \|[^|]*\| \*\*required\*\*", section("Keys"), re.MULTILINE)
    assert sorted(required) == sorted(key.name for key in KEYS.values() if key.required)


def test_the_section_about_the_matrix_names_each_key_that_takes_a_value() -> None:
    sentence = re.search(r"You can use it in (.*?)\. The script", section("Matrix"), re.DOTALL)
    assert sentence
    assert set(re.findall(r"`(\w+)`", sentence[1])) - {"job"} == set(PLACES) - {"dependencies"}
    assert "`job` of a dependency" in sentence[1]


@pytest.mark.parametrize(
    "row",
    [
        f"| the file | {limits.SCRIPT_BYTES // 1024} KiB |",
        f"| `name`, `target`, names and types of resources | {limits.NAME_CHARS} characters |",
        f"| output rules | {limits.OUTPUT_RULES}, each {limits.OUTPUT_RULE_CHARS} characters |",
        f"| files that the output rules match, in each attempt | {limits.OUTPUTS} |",
        f"| resources | {limits.RESOURCES}, each with {limits.RESOURCE_OPTIONS_BYTES // 1024} KiB of options as JSON |",
        f"| `timeout`, `hold_on_failure` | {limits.TIMEOUT_SECONDS // (24 * 3600)} days |",
        f"| `env` | {limits.ENV_ENTRIES} variables, {limits.ENV_BYTES // 1024} KiB in all |",
        f"| `tags` | {limits.TAGS}, names of {limits.TAG_NAME_CHARS} and values of {limits.TAG_VALUE_CHARS} "
        "characters |",
        f"| dependencies | {limits.DEPENDENCIES} |",
        f"| caches | {limits.CACHES} |",
        f"| `paths` | {limits.PATHS} patterns, each {limits.PATH_CHARS} characters |",
        f"| post tasks | {limits.POSTS} |",
        f"| jobs of a matrix | {limits.MATRIX}, from {AXES} axes |",
    ],
)
def test_the_table_of_limits_has_the_limits_of_the_code(row: str) -> None:
    assert row in section("Limits").splitlines()


def test_every_command_of_bmat_is_listed() -> None:
    commands = next(each for each in parser()._actions if each.dest == "command").choices
    assert commands is not None
    assert set(re.findall(r"`bmat ([a-z]+)", section("bmat"))) == set(commands)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/users/{each.name}" for each in USERS.glob("*.md"))])
def test_every_job_file_on_a_page_is_good(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for script in re.findall(r"^```bash\n(#!/bin/bash\n.*?)^```$", text, re.MULTILINE | re.DOTALL):
        assert isinstance(parse(script, page), JobFile)
