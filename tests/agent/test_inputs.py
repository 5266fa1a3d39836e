"""Inputs are fetched before the script begins, and a failure says why."""

from __future__ import annotations

import hashlib

import pytest

from tests.agent.conftest import accepted

SHOW = 'cd "$PENSTOCK_INPUT" && find . -type f | sort | while read -r each; do echo "$each $(cat "$each")"; done'


def job(worker, *misbehave, script=SHOW, **changes):
    return worker(*misbehave, script=script, inputs=True, **changes)


def test_inputs_are_in_place_before_the_script_begins(worker):
    made = job(worker)
    made.plane.keep("/input/build/work/a b/out.txt", b"built")
    made.plane.keep("/input/notes.txt", b"sent")
    made.plane.keep("/input/empty", b"")
    made.plane.page = 2
    assert made.finish()["result"] == "succeeded", made.plane.lines()
    assert made.plane.lines("stdout") == ["./build/work/a b/out.txt built", "./empty ", "./notes.txt sent"]
    assert made.plane.lines("detail")[:2] == ["fetching inputs", "fetched 3 input(s), 9 B"]
    assert made.plane.calls.count("inputs") == 2


def test_a_job_without_inputs_requests_none(worker):
    made = worker(script="true")
    assert made.finish()["result"] == "succeeded"
    assert "inputs" not in made.plane.calls


def test_an_interrupted_download_resumes(worker):
    data = bytes(range(256)) * 4096
    made = job(worker, lambda endpoint, count: -1000 if (endpoint, count) == ("kept", 1) else None, script="true")
    made.plane.keep("/input/a", data)
    assert made.finish()["result"] == "succeeded"
    assert made.plane.ranges == [None, f"bytes={len(data) - 1000}-"]
    assert (made.root / "input" / "a").read_bytes() == data


def test_without_ranges_an_interrupted_download_starts_again(worker):
    def misbehave(endpoint, count):
        return {1: -1000, 2: "whole"}.get(count) if endpoint == "kept" else None

    made = job(worker, misbehave, script="true")
    made.plane.keep("/input/a", b"x" * 5000)
    assert made.finish()["result"] == "succeeded"
    assert (made.root / "input" / "a").read_bytes() == b"x" * 5000


@pytest.mark.parametrize("trouble", ["drop", 503, 429])
def test_failed_downloads_are_retried(worker, trouble):
    made = job(worker, lambda endpoint, count: trouble if endpoint == "kept" and count < 3 else None, script="true")
    made.plane.keep("/input/a", b"x")
    assert made.finish()["result"] == "succeeded"


def test_a_refused_url_is_replaced(worker):
    made = job(worker, lambda endpoint, count: 403 if (endpoint, count) == ("kept", 1) else None, script="true")
    made.plane.keep("/input/a", b"x")
    assert made.finish()["result"] == "succeeded"
    assert made.plane.calls.count("inputs") == 2
    assert "the input /input/a could not be fetched: storage answered HTTP 403" in made.plane.lines("worker")


def test_no_task_begins_with_wrong_bytes(worker):
    made = job(worker)
    wrong = hashlib.sha256(b"other").hexdigest()
    made.plane.keep("/input/good", b"good")
    made.plane.keep("/input/build/a", b"bytes", sha256=wrong)
    outcome = made.finish()
    assert outcome["result"] == "unprepared"
    found = hashlib.sha256(b"bytes").hexdigest()
    assert outcome["reason"] == (
        f"the input /input/build/a could not be fetched: expected were 5 bytes with SHA-256 {wrong}; "
        f"found were 5 bytes with {found}"
    )
    failure = accepted(outcome["failure"])
    assert (failure["kind"], failure["evidence"]["path"]) == ("input_failed", "/input/build/a")
    assert made.plane.lines("task") == []
    assert made.plane.lines("detail") == ["fetching inputs"], "no task was started"
    assert not (made.root / "input" / "build" / "a").exists()


def test_more_bytes_than_expected_are_wrong(worker):
    made = job(worker)
    made.plane.keep("/input/a", b"bytes", size=4)
    outcome = made.finish()
    assert (outcome["result"], "expected were 4 bytes" in outcome["reason"]) == ("unprepared", True)


def test_a_path_out_of_the_input_folder_is_refused(worker):
    made = job(worker)
    made.plane.keep("/input/../work/a", b"x")
    outcome = made.finish()
    assert outcome["reason"] == "the input /input/../work/a could not be fetched: its path leads out of /input"
    assert made.plane.calls.count("inputs") == 1


def test_an_input_that_cannot_be_written(worker):
    made = job(worker)
    made.plane.keep("/input/a", b"x")
    made.plane.keep("/input/a/b", b"x")
    made.plane.page = 1
    outcome = made.finish()
    assert outcome["result"] == "unprepared"
    assert "the input /input/a/b could not be fetched: it cannot be written" in outcome["reason"]


def test_a_cancelled_job_stops_downloading(worker):
    made = job(worker, lambda endpoint, count: 503 if endpoint == "kept" else None)
    made.plane.keep("/input/a", b"x")
    made.start()
    made.plane.wait_for(lambda: "kept" in made.plane.calls)
    made.plane.cancel = True
    made.plane.wait_for(lambda: made.plane.finishes)
    assert made.outcome()["result"] == "cancelled"
    assert "its inputs were still being fetched" in made.outcome()["reason"]


def test_the_timeout_counts_while_inputs_are_fetched(worker):
    made = job(worker, lambda endpoint, count: 503 if endpoint == "kept" else None, timeout_seconds=0.5)
    made.plane.keep("/input/a", b"x")
    outcome = made.finish()
    assert outcome["result"] == "timed_out"
