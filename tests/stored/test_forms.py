"""This release reads what the release before has stored, and writes what that one can read."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.aws import dynamodb
from penstock.domain.jobs.jobs import Job
from penstock.kernel.errors import Newer
from penstock.kernel.rows import FORM
from tests.stored.forms import Forms, broken, forms

RELEASED = Path(__file__).parent / "released"
BEFORE: Forms = json.loads((RELEASED / "forms.json").read_text(encoding="utf-8"))
ROWS = [json.loads(line) for line in (RELEASED / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
A_JOB = next(each["body"] for each in ROWS if each["of"] == Job.kind)


def missing(was: Any, now: Any, path: str = "") -> list[str]:
    """What of a value is not in another, by its place."""
    if isinstance(was, dict) and isinstance(now, dict):
        return [each for name in was for each in missing(was[name], now.get(name), f"{path}.{name}")]
    return [] if was == now else [path]


def test_each_release_reads_what_the_other_declares() -> None:
    assert broken(BEFORE, forms()) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["of"])
def test_a_row_of_the_release_before_is_read_and_keeps_what_is_in_it(row: dict[str, str]) -> None:
    read = dynamodb.load(row["of"], row["body"], 7)
    assert read.version == 7
    assert missing(json.loads(row["body"]), json.loads(dynamodb.dump(read))) == []


def test_many_kinds_were_recorded() -> None:
    assert len({row["of"] for row in ROWS}) > 30


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda was: was["kinds"].pop("job"), "rows of the kind job can no longer be read"),
        (lambda was: was["kinds"]["job"].pop("id"), "job.id is gone, and the release before requires it"),
        (lambda was: was["kinds"]["job"].update(id=["int", False]), "job.id was str and is int"),
        (lambda was: was["kinds"]["job"].update(x=["str", False]), "job.x has no default, so rows without it cannot"),
        (lambda was: was["kinds"]["job"]["attempt"].__setitem__(1, False), "job.attempt has no default any more"),
        (lambda was: was["enums"]["State"].pop(), "State has no "),
    ],
)
def test_what_the_other_release_cannot_read_is_noticed(change: Callable[[Any], Any], says: str) -> None:
    after = copy.deepcopy(BEFORE)
    change(after)
    found = broken(BEFORE, after)
    assert len(found) == 1
    assert found[0].startswith(says)


def test_a_new_field_with_a_default_and_a_new_kind_are_allowed() -> None:
    after = copy.deepcopy(BEFORE)
    after["kinds"]["job"]["later"] = ["str", True]
    after["kinds"]["new"] = {"x": ["str", False]}
    assert broken(BEFORE, after) == []


def test_who_writes_a_row_again_keeps_what_only_a_newer_release_knows() -> None:
    newer = json.dumps(json.loads(A_JOB) | {"later": {"a": [1]}})
    read = dynamodb.load(Job.kind, newer, 1)
    assert isinstance(read, Job)
    written = json.loads(dynamodb.dump(replace(read, attempt=read.attempt + 1)))
    assert (written["later"], written["attempt"]) == ({"a": [1]}, read.attempt + 1)


def test_what_is_known_is_not_kept_beside_what_was_written() -> None:
    read = dynamodb.load(Job.kind, A_JOB, 1)
    assert read.unknown is None


@pytest.mark.parametrize("form", [FORM + 1, "2", None])
def test_a_form_that_only_a_newer_release_knows_is_not_misread(form: object) -> None:
    with pytest.raises(Newer, match=f"reads forms up to {FORM}"):
        dynamodb.load(Job.kind, json.dumps(json.loads(A_JOB) | {"form": form}), 1)


def test_a_kind_that_only_a_newer_release_knows_is_not_misread() -> None:
    with pytest.raises(Newer, match="'later'"):
        dynamodb.load("later", "{}", 1)
