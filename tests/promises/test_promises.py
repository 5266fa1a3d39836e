"""Every promise has code that keeps it and tests that ask for it, and docs/internals/promises.md says which."""

from __future__ import annotations

import pytest

from tests.promises import find
from tests.promises.page import page

KEPT = [label for label in find.PROMISES if label not in find.NOT_YET]


def test_the_document_is_what_the_code_says() -> None:
    told = (find.ROOT / "docs/internals/promises.md").read_text(encoding="utf-8")
    assert told == page(), "run `python -m tests.promises > docs/internals/promises.md`"


@pytest.mark.parametrize("label", KEPT)
def test_a_promise_has_code_and_tests(label: str) -> None:
    assert find.code().get(label), f"nothing in functions/ carries [{label}]"
    assert find.tests().get(label), f"no test names {label}"


def test_what_is_not_kept_yet_has_no_code() -> None:
    for label, why in find.NOT_YET.items():
        assert label in find.PROMISES
        assert not find.code().get(label), f"there is code for {label}: take it off the list in promises.toml"
        assert why


def test_no_label_is_unknown() -> None:
    everywhere = [find.code(), find.tests(), find.model(), find.watchers("simulation"), find.watchers("tests/crash")]
    assert {label for found in everywhere for label in found} <= set(find.PROMISES)


def test_what_says_nothing_of_a_promise_is_not_found() -> None:
    """The finder sees docstrings of modules, classes, functions and values; not words in other places."""
    assert ("functions/penstock/domain/pools/pools.py", "take") in find.code()["SLOT-1"]
    assert ("functions/penstock/domain/artifacts/artifacts.py", "disown") in find.code()["ART-2"]
    assert ("functions/penstock/usecases/jobs/settle.py", "") in find.code()["JOB-1"]
    assert ("model/properties.pml", "check_alone") in find.model()["JOB-2"]
    assert ("simulation/invariants.py", "fences_grow") not in find.code()["SLOT-3"]
