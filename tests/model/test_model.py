"""The model of the protocol, checked by spin. The long configurations are in `python model/run.py full`."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from model import run

pytestmark = pytest.mark.skipif(run.missing(), reason=run.MISSING)
QUICK = [one for one in run.configurations() if one.level == "quick"]


@pytest.fixture(scope="module")
def checked() -> dict[str, Future[run.Checked]]:
    pool = ThreadPoolExecutor(2)
    return {one.name: pool.submit(run.check, one) for one in QUICK}


@pytest.mark.xdist_group("model")
@pytest.mark.parametrize("name", [one.name for one in QUICK])
def test_spin_says_what_is_expected(name: str, checked: dict[str, Future[run.Checked]]) -> None:
    each = checked[name].result()
    assert each.outcome == each.configuration.expect, each.configuration.says
    assert each.states > 0


def test_every_negative_control_is_found_in_the_quick_run() -> None:
    controls = {"FILE_ORDER", "PARALLEL", "ONE_BY_ONE", "SERVE_FIRST", "NO_FENCE", "NO_CHECK", "PHANTOM_CLAIM"}
    controls |= {"HELLO_ANY_STATE", "STALE_AFTER_HELLO", "MADE_LATE", "NO_REMINDER", "VERSION_ANEW"}
    controls |= {"RESIZE_UNCHECKED", "RESIZE_ONLY_CHECKS", "RELEASE_IGNORES_OVER", "RESUME_ONLY", "TWO_COMMITS"}
    controls |= {"ONE_QUEUE", "SETTLE_ONLY", "SETTLE_READS_FIRST", "EACH_ITS_ORDER", "NO_BOUND", "ANY_WINDOW"}
    assert controls <= {switch for one in QUICK if one.expect == "found" for switch in one.switches}
