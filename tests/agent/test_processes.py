"""`bmat process start`: processes beside a task, which end with it."""

from tests.agent.conftest import is_alive
from tests.agent.control_plane import ONE_STREAM, PATIENCE_SECONDS

UP = "until [ -e up ]; do sleep 0.05; done; rm up"
"""Waits in a task until a process beside it has printed its line."""


def test_its_output_is_logged_and_it_ends_with_its_task(worker):
    job = worker(
        script="cd $PENSTOCK_WORK; export GREETING=hello\n"
        "bmat process start talker sh -c 'echo $$ > pid; echo $GREETING from $PWD; echo no >&2; exec sleep 600'\n"
        "until [ -s pid ]; do sleep 0.05; done; echo the task goes on"
    )
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["the task goes on"]
    (said,) = job.plane.lines("bg.talker.stdout")
    assert said.startswith("hello from ")
    assert said.endswith("/work")
    assert job.plane.lines("bg.talker.stderr") == ["no"]
    assert not is_alive((job.root / "work" / "pid").read_text())
    told = job.plane.lines("task")
    assert any(line.startswith('started background process "talker" (pid ') for line in told)
    assert "ended the background processes of the task (talker); they got SIGTERM" in told


def test_an_exit_is_logged(worker):
    job = worker(
        script="cd $PENSTOCK_WORK; bmat process start short sh -c 'exit 3'\n"
        "bmat process start killed sh -c 'kill -9 $$'; until [ -e go ]; do sleep 0.05; done"
    )
    agent = job.start()
    ended = {'background process "short" ', 'background process "killed" '}
    job.plane.wait_for(lambda: all(any(line.startswith(each) for line in job.plane.lines("task")) for each in ended))
    (job.root / "work" / "go").touch()
    assert agent.wait(PATIENCE_SECONDS) == 0
    assert job.outcome()["result"] == "succeeded"
    told = job.plane.lines("task")
    assert 'background process "short" exited with code 3' in told
    assert 'background process "killed" was killed by signal 9 (SIGKILL)' in told
    assert not any("ended the background" in line for line in told)


def test_descendants_end_too_and_those_that_ignore_term_are_killed(worker):
    job = worker(
        script="cd $PENSTOCK_WORK\n"
        "bmat process start stubborn bash -c 'trap \"\" TERM; (sleep 600 & echo $! > child; wait) & sleep 600'\n"
        "until [ -s child ]; do sleep 0.05; done"
    )
    assert job.finish()["result"] == "succeeded"
    assert not is_alive((job.root / "work" / "child").read_text())
    assert any("SIGKILL after" in line for line in job.plane.lines("task") if "background" in line)


def test_a_process_that_cannot_be_started(worker):
    job = worker(
        script=f"{ONE_STREAM}\nbmat process start a sleep 60; bmat process start a sleep 60; echo $?\n"
        "bmat process start b /no/such/program; echo $?; bmat process start c/d true; echo $?\n"
        "mkdir gone; cd gone; rmdir ../gone; bmat process start e true; test $? -ne 0"
    )
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    lines = job.plane.lines("stdout")
    assert lines[:2] == ["bmat: there is a process a already", "1"]
    assert lines[2].startswith("bmat: /no/such/program cannot be started: ")
    assert lines[3:6] == ["1", "bmat: 'c/d' is no name: 1 to 48 of A-Z a-z 0-9 . _ -", "1"]


def test_each_task_has_its_own_background_processes(worker):
    tasks = [
        {"name": name, "script": "bmat process start db sh -c 'echo up; touch up; sleep 600'\n" + UP, "env": {}}
        for name in ("one", "two")
    ]
    job = worker(tasks=tasks)
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    assert job.plane.lines("bg.db.stdout") == ["up", "up"]
    assert sum("ended the background" in line for line in job.plane.lines("task")) == 2


def test_background_processes_end_when_the_job_is_cancelled(worker):
    job = worker(script="cd $PENSTOCK_WORK; bmat process start db sh -c 'echo $$ > pid; exec sleep 600'; sleep 600")
    agent = job.start()
    job.plane.wait_for(lambda: (pid := job.root / "work" / "pid").exists() and pid.read_text())
    job.plane.cancel = True
    assert agent.wait(PATIENCE_SECONDS) == 0
    assert job.outcome()["result"] == "cancelled"
    assert not is_alive((job.root / "work" / "pid").read_text())


def test_secrets_in_the_output_of_background_processes_are_hidden(worker):
    """SEC-1"""
    job = worker(
        script="bmat process start leaky sh -c 'echo it is $TOKEN; touch up'\n" + UP,
        env={"TOKEN": "Tr0ub4dor"},
        resources={"db": {"type": "database", "metadata": {"password": "Tr0ub4dor"}, "public": []}},
    )
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("bg.leaky.stdout") == ["it is ***"]
