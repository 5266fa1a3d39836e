"""`bmat store`: values that a job puts and waits for. [SEC-1]"""

from tests.agent.control_plane import ONE_STREAM, PATIENCE_SECONDS

SECRET = "Tr0ub4dor&3/+x"


def test_one_task_gets_what_another_puts(worker):
    job = worker(
        script="set -e; bmat store put url http://x; echo from stdin | bmat store put said\n"
        "printf 'two\\nlines\\n' | bmat store put lines; bmat store put url http://y\n"
        "bmat store get url; bmat store get -W said; bmat store get lines | wc -l"
    )
    assert job.finish()["result"] == "succeeded"
    assert [line.strip() for line in job.plane.lines("stdout", "stderr")] == ["http://y", "from stdin", "2"]
    assert job.plane.store["lines"] == ("two\nlines", False)


def test_get_without_waiting_fails_if_there_is_no_value(worker):
    job = worker(script=f"{ONE_STREAM}; bmat store get -W nothing; echo $?; bmat store put a/b x; echo $?")
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == [
        "bmat: there is no value 'nothing'", "1", "bmat: HTTP 400: that is no name", "1",
    ]  # fmt: skip


def test_a_waiting_job_continues_when_the_value_is_put(worker):
    job = worker(script="echo waits; bmat store get answer; echo goes on")
    agent = job.start()
    job.plane.wait_for_line("waits")
    job.plane.wait_for(lambda: job.plane.calls.count("get") > 1)
    job.plane.store["answer"] = ("42", False)
    assert agent.wait(PATIENCE_SECONDS) == 0
    assert job.outcome()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["waits", "42", "goes on"]


def test_a_cancelled_job_stops_waiting(worker):
    job = worker(script="echo waits; bmat store get answer")
    agent = job.start()
    job.plane.wait_for_line("waits")
    job.plane.cancel = True
    assert agent.wait(PATIENCE_SECONDS) == 0
    assert job.outcome()["result"] == "cancelled"


def test_a_call_that_fails_for_a_while_is_retried(worker):
    job = worker(
        lambda endpoint, count: 503 if endpoint in ("get", "put", "identity") and count < 3 else None,
        script="bmat store put a b && bmat store get a\n"
        "bmat identity token --audience sts.amazonaws.com > /dev/null && echo got",
    )
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout", "stderr") == ["b", "got"]


def test_secrets_are_hidden_as_soon_as_they_are_known(worker):
    job = worker(
        script="got=$(bmat store get key); echo \"it is $got\"; bmat store put -s mine 'my own secret'\n"
        "echo 'this is my own secret'; bmat store get mine | base64; bmat store put -s pin 123; echo 123"
    )
    job.plane.store["key"] = (SECRET, True)
    assert job.finish()["result"] == "succeeded"
    assert job.plane.store["mine"] == ("my own secret", True)
    lines = job.plane.lines("stdout", "stderr")
    assert lines[:2] == ["it is ***", "this is ***"]
    assert lines[2].startswith("***")
    assert lines[3] == "123", "fewer than four characters are not hidden: too much else would look like it"
