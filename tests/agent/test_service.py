"""A service that is slow, broken, forgetful or refuses calls."""

import pytest

from tests.agent.control_plane import JOB, KEY


def test_errors_and_lost_replies_are_retried_without_doubles(worker):
    def shaky(endpoint, count):
        return {1: 500, 2: "forget", 4: "drop", 6: 429}.get(count)

    job = worker(shaky, script="seq 1 300; echo x > x", output_rules=["=/work/x"], limits={"batch_events": 50})
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == [str(i) for i in range(1, 301)]
    assert job.plane.outputs() == {"/work/x": b"x\n"}


def test_a_lost_hello_reply_is_asked_for_again_with_the_same_token(worker):
    """SEC-2: one worker has one token."""
    job = worker(lambda endpoint, count: "forget" if (endpoint, count) == ("hello", 1) else None)
    assert job.finish()["result"] == "succeeded"
    assert len({hello["token"] for hello in job.plane.hellos}) == 1
    assert len(job.plane.hellos) == 2
    assert len(job.plane.token) >= 43


def test_the_token_outlives_an_agent_that_got_no_answer(worker):
    """SEC-2: one worker has one token."""
    job = worker(lambda endpoint, count: "forget" if endpoint == "hello" and count < 3 else None)
    agent = job.start()
    job.plane.wait_for(lambda: job.plane.hellos)
    agent.kill()
    agent.wait(25)
    assert job.finish()["result"] == "succeeded"
    assert len({hello["token"] for hello in job.plane.hellos}) == 1
    assert (job.folder / "token").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("status", "code"), [(410, 0), (401, 1), (403, 1), (409, 1)])
def test_a_refused_hello_ends_the_agent(worker, status, code):
    job = worker(lambda endpoint, count: status, script="touch ran")
    assert job.run() == code
    assert job.plane.calls == ["hello"]
    assert not (job.root / "work").exists()


def test_a_refused_event_does_not_stop_the_others(worker):
    job = worker(script="echo 1; echo 2; echo poison; echo 4")
    take = job.plane._events

    def picky(body):
        poisoned = any(event["payload"] == "poison" for event in body["events"])
        return (422, {"detail": "no"}) if poisoned else take(body)

    job.plane._events = picky
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["1", "2", "[the service refused this line: HTTP 422]", "4"]


def test_a_slow_service_slows_the_job_down(worker):
    limits = {"batch_events": 10, "batch_bytes": 2000}
    job = worker(script="(for i in {1..200000}; do echo $i; done; touch through) & wait", limits=limits)
    job.plane.misbehave = lambda endpoint, count: 503 if endpoint == "events" else None
    agent = job.start()
    job.plane.wait_for(lambda: job.plane.calls.count("events") > 2)
    assert not (job.root / "work" / "through").exists()
    job.plane.cancel = True
    job.plane.misbehave = lambda endpoint, count: None
    assert agent.wait(25) == 0
    lines = job.plane.lines("stdout")
    assert lines == [str(i) for i in range(1, len(lines) + 1)]


def test_secrets_stay_out_of_the_log_and_the_events(worker):
    """SEC-1: neither tokens nor keys are told."""
    job = worker(
        lambda endpoint, count: 500 if count == 1 else None,
        resources={"r": {"type": "t", "metadata": {"p": "pw!"}}},
    )
    job.finish()
    told = job.log() + "".join(job.plane.lines())
    assert not [secret for secret in (KEY, job.plane.token, "pw!", "signature") if secret in told]
    assert JOB in told


def test_a_report_that_is_refused_counts_as_lost(worker):
    """JOB-1: what was not told did not end."""
    job = worker(lambda endpoint, count: 409 if endpoint == "finish" else None)
    assert job.run() == 1
    assert "HTTP 409" in job.log()


def test_a_reason_is_never_too_long(worker):
    task = {"name": "x" * 3000, "script": "false"}
    assert len(worker(tasks=[task]).finish()["reason"]) == 2000
