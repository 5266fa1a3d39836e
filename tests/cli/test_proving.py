"""penstock factory test: what is shown, how it exits, and that it never leaves a machine without saying so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.cli.commands import factory_test
from tests.cli.conftest import Run
from tests.cli.proof import GONE, HELD, PASSED, page
from tests.cli.service import SETTLED, Service

FAILED = page(3, "agent said hello", **HELD)
SAYS_WHERE = "`penstock worker show w1`"


@pytest.fixture(autouse=True)
def hurry_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory_test, "EACH", 0.01)
    monkeypatch.setattr(factory_test, "LEAVING", 0.1)


def stop(monkeypatch: pytest.MonkeyPatch, *looks: int) -> None:
    """Ctrl-C while it waits for the n-th time."""
    times = iter(range(1, 10**6))

    def sleep(seconds: float) -> None:
        del seconds
        if next(times) in looks:
            raise KeyboardInterrupt

    monkeypatch.setattr(factory_test.time, "sleep", sleep)


def test_each_check_is_a_line_with_its_time(penstock: Run, service: Service) -> None:
    done = penstock("factory", "test", "aws")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:3] == [
        "✓ settings: it is so",
        "✓ ordered (2.5s): it is so",
        "✓ agent said hello (2.5s): it is so",
    ]
    assert lines[-1].startswith("✓ output downloaded (")
    assert len(lines) == 8
    assert done.stderr.splitlines() == ["factory aws, target lab: job t1", "the job waits for target/lab"]
    assert service.proof.begun == [{}]


def test_json_is_all_checks_at_the_end(penstock: Run) -> None:
    found = json.loads(penstock("factory", "test", "aws", "--json").stdout)
    assert found[1] == {"target": "lab", "check": "ordered", "ok": True, "detail": "it is so", "seconds": 2.5}
    assert [one["ok"] for one in found] == [True] * 8


def test_factory_test_sends_its_options_and_shows_what_it_waits_for(penstock: Run, service: Service) -> None:
    service.proof.waits = ["factory aws: no capacity until 10:20 UTC"]
    service.proof.after["release"] = [PASSED]
    done = penstock("factory", "test", "aws", "--target", "big", "--keep-on-failure", "1h")
    assert service.proof.begun == [{"target": "big", "keep_on_failure": 3600}]
    assert "it will wait: factory aws: no capacity until 10:20 UTC" in done.stderr
    asked = next(headers for _, path, headers, _ in service.asked if path.endswith("/test"))
    assert asked["Idempotency-Key"]


def test_a_failed_test_names_the_cause_and_the_checks_not_reached(penstock: Run, service: Service) -> None:
    service.proof.pages = [page(2), page(3, "agent said hello", **GONE)]
    done = penstock("factory", "test", "aws")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[2:5] == [
        "✗ agent said hello (2.5s): no such image",
        "    console: nothing",
        "- job ran: not reached",
    ]
    assert service.proof.done == []


def test_a_damaged_download_is_detected(penstock: Run, service: Service) -> None:
    service.content = b"x" * len(service.content)
    done = penstock("factory", "test", "aws")
    assert done.exit_code == 1
    assert "✗ output downloaded: /work/penstock-test.txt arrived damaged" in done.stdout


def test_a_test_that_takes_too_long_is_cancelled(penstock: Run, service: Service) -> None:
    service.proof.pages = [page(2)]
    service.proof.after["cancel"] = [page(2), page(7, "job ran", **GONE)]
    done = penstock("factory", "test", "aws", "--timeout", "1s")
    assert done.exit_code == 1
    assert "✗ in time: it was not over after 1.0s: the job waits for target/lab" in done.stdout
    assert service.proof.done == ["cancel"]
    assert "✓ destroyed" in done.stdout
    assert SAYS_WHERE not in done.stderr


@pytest.mark.parametrize(("worker", "says"), [("w1", SAYS_WHERE), (None, "`penstock job why t1`")])
def test_a_worker_that_is_left_is_named(penstock: Run, service: Service, worker: str | None, says: str) -> None:
    service.proof.pages = [page(2, worker=worker)]
    done = penstock("factory", "test", "aws", "--timeout", "1s")
    assert done.exit_code == 1
    assert says in done.stderr


def test_keep_on_failure_holds_the_worker(penstock: Run, service: Service) -> None:
    service.proof.pages = [page(2, held_until=HELD["held_until"]), FAILED]
    done = penstock("factory", "test", "aws", "--keep-on-failure", "1h")
    assert done.exit_code == 1
    body = next(body for method, path, _, body in service.asked if path == "/v1/workers/w1/hold")
    assert body == {"reason": "a test of factory aws failed: agent said hello", "for": 3600}
    assert f"- kept: worker w1 is held until {SETTLED}; `penstock worker release w1` lets it go" in done.stdout
    assert service.proof.done == ["hold"]


def test_the_worker_of_a_passed_test_is_released(penstock: Run, service: Service) -> None:
    service.proof.pages = [page(5, **HELD)]
    service.proof.after["release"] = [PASSED]
    done = penstock("factory", "test", "aws", "--keep-on-failure", "1h")
    assert done.exit_code == 0, done.stdout
    assert service.proof.done == ["release"]


def test_a_worker_that_was_never_made_is_not_held(penstock: Run, service: Service) -> None:
    service.proof.pages = [page(2, "ordered", **HELD)]
    service.proof.after["release"] = [page(2, "ordered", **GONE)]
    assert penstock("factory", "test", "aws", "--keep-on-failure", "1h").exit_code == 1
    assert service.proof.done == ["release"]


def test_ctrl_c_cancels_it_and_waits_until_its_machine_is_gone(
    penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(monkeypatch, 2)
    service.proof.pages = [page(2)]
    service.proof.after["cancel"] = [page(2), page(2), page(7, "job ran", **GONE)]
    done = penstock("factory", "test", "aws")
    assert (done.exit_code, service.proof.done) == (130, ["cancel"])
    assert done.stderr.endswith("stopped; nothing of it is left\n")


def test_ctrl_c_releases_a_held_worker(penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    stop(monkeypatch, 1)
    service.proof.pages = [page(2, held_until=HELD["held_until"])]
    service.proof.after["release"] = [page(7, "job ran", **GONE)]
    assert penstock("factory", "test", "aws", "--keep-on-failure", "1h").exit_code == 130
    assert service.proof.done == ["cancel", "release"]


def test_ctrl_c_again_leaves_and_says_what_is_left(
    penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(monkeypatch, 1, 3)
    service.proof.pages = [page(2)]
    done = penstock("factory", "test", "aws")
    assert done.exit_code == 130
    assert f"worker w1 is not gone yet; it will be destroyed all the same: {SAYS_WHERE}" in done.stderr


def test_all_targets_are_tested_and_one_that_is_refused_stops_no_other(penstock: Run, service: Service) -> None:
    done = penstock("factory", "test", "aws", "--all", "--json")
    assert done.exit_code == 1
    found: list[dict[str, Any]] = json.loads(done.stdout)
    assert found[0]["check"] == "begun"
    assert "paused by an operator" in found[0]["detail"]
    assert {one["target"] for one in found[1:]} == {"big"}
    assert all(one["ok"] for one in found[1:])
    assert service.proof.begun == [{"target": "big"}]


@pytest.mark.parametrize("words", [("nowhere",), ("nowhere", "--all"), ("aws", "--target", "closed")])
def test_factory_test_refuses_wrong_options(penstock: Run, words: tuple[str, ...]) -> None:
    done = penstock("factory", "test", *words)
    assert done.exit_code == 2
    assert done.stdout == ""


def test_one_target_and_all_exclude_each_other(penstock: Run, service: Service) -> None:
    assert penstock("factory", "test", "aws", "--all", "--target", "lab").exit_code == 2
    assert service.asked == []
