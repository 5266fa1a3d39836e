"""Posts run after the tasks: those of the job file, and those that `bmat post` adds."""

import pytest


@pytest.mark.parametrize(
    ("end", "result", "ran"),
    [("true", "succeeded", ["good", "any"]), ("exit 3", "failed", ["bad", "any"])],
)
def test_each_post_runs_after_the_results_it_is_for(worker, end, result, ran):
    job = worker(
        script="cd $PENSTOCK_WORK; export WORD=said\n"
        "bmat post success one sh -c 'echo good'; bmat post failure two sh -c 'echo bad'\n"
        f"bmat post always three sh -c 'echo any > any; echo any'; echo task; {end}",
        output_rules=["/work/any"],
    )
    assert job.finish()["result"] == result
    assert job.plane.lines("stdout") == ["task", *ran]
    assert job.plane.outputs() == {"/work/any": b"any\n"}
    assert [line for line in job.plane.lines("detail") if line.startswith("starting task 2")] == [
        'starting task 2: "three"'
    ]


def test_a_post_has_the_folder_and_the_environment_of_its_caller(worker):
    job = worker(
        script="mkdir -p $PENSTOCK_WORK/a; cd $PENSTOCK_WORK/a; WORD=said bmat post always x sh -c 'echo $WORD; pwd'"
    )
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout")[0] == "said"
    assert job.plane.lines("stdout")[1].endswith("/work/a")


def test_a_failed_post_fails_the_job_and_the_others_run(worker):
    job = worker(script="bmat post always a sh -c 'exit 4'; bmat post always b sh -c 'echo b; exit 5'")
    done = job.finish()
    assert (done["result"], done["exit_code"]) == ("failed", 4)
    assert 'task 1 "a" exited with code 4' in done["reason"]
    assert job.plane.lines("stdout") == ["b"]


def test_a_failed_task_stays_the_reason_whatever_the_posts_do(worker):
    job = worker(script="bmat post always a sh -c 'exit 4'; exit 3")
    assert job.finish()["exit_code"] == 3


def test_no_post_runs_after_a_cancelled_job(worker):
    job = worker(script="bmat post always a sh -c 'echo after'; echo ready; sleep 600")
    agent = job.start()
    job.plane.wait_for_line("ready")
    job.plane.cancel = True
    assert agent.wait(25) == 0
    assert job.outcome()["result"] == "cancelled"
    assert job.plane.lines("stdout") == ["ready"]


def test_invalid_posts_are_refused(worker):
    job = worker(
        script="bmat post always a true; bmat post always a true; echo $?; bmat post always b/c true; echo $?\n"
        "bmat post sometimes a true; echo $?; bmat post always d; echo $?\n"
        "bmat post always late bmat post always later true"
    )
    done = job.finish()
    lines = job.plane.lines("stdout", "stderr")
    assert "bmat: there is a post a already" in lines
    assert [line for line in lines if line.isdigit()] == ["1", "1", "2", "2"]
    assert "bmat: the tasks are over" in lines
    assert done["result"] == "failed"


TOLD = [
    {"name": "good", "on": "success", "script": "echo good; exit 0\necho never"},
    {"name": "bad", "on": "failure", "script": "echo bad"},
    {"name": "any", "on": "always", "script": "echo $WORD in $(pwd) | sed s,$PENSTOCK_ROOT,,; echo kept > kept"},
]


@pytest.mark.parametrize(
    ("end", "result", "ran"),
    [("true", "succeeded", ["good", "said in /work"]), ("exit 3", "failed", ["bad", "said in /work"])],
)
def test_posts_of_the_job_file_run_first(worker, end, result, ran):
    job = worker(
        script=f"bmat post always last sh -c 'echo last'; echo task; {end}",
        posts=TOLD,
        env={"WORD": "said"},
        output_rules=["/work/kept"],
    )
    assert job.finish()["result"] == result
    assert job.plane.lines("stdout") == ["task", *ran, "last"]
    assert job.plane.outputs() == {"/work/kept": b"kept\n"}


def test_a_name_from_the_job_file_is_taken(worker):
    job = worker(script="bmat post always any true || echo taken", posts=TOLD, env={"WORD": "said"})
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout")[0] == "taken"


def test_a_failed_post_of_the_job_file_fails_the_job(worker):
    job = worker(script="true", posts=[{"name": "x", "on": "always", "script": "exit 4"}])
    done = job.finish()
    assert (done["result"], done["exit_code"]) == ("failed", 4)
