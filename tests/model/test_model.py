"""The model of the protocol, checked by spin.

`make e2e` checks a SAMPLE. Run `python model/run.py quick` after you have changed the model.
"""

from __future__ import annotations

import pytest

from model import run

pytestmark = pytest.mark.skipif(run.missing(), reason=run.MISSING)
QUICK = {one.name: one for one in run.configurations() if one.level == "quick"}
SAMPLE = ("cancel", "twins", "no-check", "phantom-claim", "kept-for-two", "resize-unchecked")
"""Of each of the two models: what holds, and what spin must find. `make prove` checks every configuration."""


@pytest.mark.e2e
@pytest.mark.parametrize("name", SAMPLE)
def test_spin_says_what_is_expected(name: str) -> None:
    assert run.check(QUICK[name]).is_right, QUICK[name].says


def test_many_states_are_counted_too() -> None:
    assert run.number_before(" states, stored", "\n   473 states, stored\n") == 473
    assert run.number_before(" states, stored", "\n1.2345678e+08 states, stored\n") == 123456780
    assert run.number_before(" states, stored", "killed") == 0


def test_the_sample_is_of_both_models_and_both_verdicts() -> None:
    sampled = {(one.model, one.expect) for name, one in QUICK.items() if name in SAMPLE}
    assert sampled == {(one.model, one.expect) for one in QUICK.values()}


def test_every_negative_control_is_found_in_the_quick_run() -> None:
    controls = {"FILE_ORDER", "PARALLEL", "ONE_BY_ONE", "SERVE_FIRST", "NO_FENCE", "NO_CHECK", "PHANTOM_CLAIM"}
    controls |= {
        "HELLO_ANY_STATE",
        "STALE_AFTER_HELLO",
        "ENDS_WHAT_RUNS",
        "MADE_LATE",
        "NO_REMINDER",
        "VERSION_ANEW",
        "NOBODY_ANSWERS",
    }
    controls |= {
        "RESIZE_UNCHECKED",
        "RESIZE_ONLY_CHECKS",
        "GRANT_IGNORES_OVER",
        "NOT_DUE_MEANWHILE",
        "PASS_WAITING",
        "RESUME_ONLY",
        "TWO_COMMITS",
    }
    controls |= {"ONE_QUEUE", "SETTLE_ONLY", "SETTLE_READS_FIRST", "EACH_ITS_ORDER", "NO_BOUND", "ONE_LINE"}
    controls |= {"FIRST_FREE", "BY_NUMBER", "LINES_IGNORE_CHOICES", "FEWEST_ONLY", "OWN_FIT_ONLY"}
    controls |= {"WHOLE_UNCHECKED", "HELD_UNREAD", "ROW_READ_ONCE", "READ_ONCE"}
    controls |= {"PARTS_UNCHECKED", "PART_UNSEEN", "LINES_IGNORE_OWNERS", "PASSED_UNCOUNTED"}
    assert controls <= {switch for one in QUICK.values() if one.expect == "found" for switch in one.switches}
