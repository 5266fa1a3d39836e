"""`penstock factory test`, end to end: against a factory that works and one that does not."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import Local

pytestmark = pytest.mark.xdist_group("jobs")


def test_a_factory_that_works_passes_every_check(local: Local) -> None:
    done = local.cli("factory", "test", "here", "--target", "default", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)
    assert [check["check"] for check in found if not check["ok"]] == []
    assert {check["check"] for check in found} == {
        "settings", "ordered", "listed with its tags", "agent said hello", "agent version", "job ran",
        "log came through", "environment", "output came back", "destroyed", "not listed any more", "output downloaded",
    }  # fmt: skip
    assert {check["target"] for check in found} == {"ubuntu-24.04"}
    local.put_back()
    assert not local.agents()


def test_a_factory_that_is_broken_fails_and_says_why(local: Local) -> None:
    done = local.cli("factory", "test", "broken", "--keep-on-failure", "1h")
    assert done.returncode == 1, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("\u2717")]
    assert line.startswith("\u2717 ordered: the agent cannot be started:")
    assert "/nonexistent/python" in line
    assert "- agent said hello: not reached" in done.stdout
    local.put_back()


def test_a_test_that_takes_too_long_leaves_nothing(local: Local) -> None:
    """The pool is full: the test waits, is given up, and was never granted anything."""
    job = local.submit("sleep 600\n", "-t", "lab")
    local.until(lambda: local.job(job)["state"] == "running")
    done = local.cli("factory", "test", "here", "-t", "lab", "--timeout", "2s")
    assert done.returncode == 1, done.stderr
    assert "\u2717 in time: it was not over after 2.0s" in done.stdout
    local.cli("job", "cancel", job)
    local.settled(job)
    local.put_back()
