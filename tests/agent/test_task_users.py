"""Tasks with users and folders of their own, as requests without a job file have them."""

import os

import pytest

from penstock.agent.account import Account, task_account

BUILD = Account("build", 12345, 12345, "/home/build", may_be_root=True)


def task(name, script, **more):
    return {"name": name, "script": script, "env": {}, "env_clear": False, "workdir": "/work", **more}


def output(job):
    """Return what the tasks printed, without the one that sets up the machine."""
    events = [job.plane.events[number] for number in sorted(job.plane.events)]
    return [each["payload"] for each in events if each["stream"] == "stdout" and each["task"]]


def test_tasks_run_in_order_until_one_fails_each_with_its_folder_and_environment(worker):
    job = worker(
        tasks=[
            task("one", 'pwd; echo "$A$B"; id -u', env={"A": "a"}, workdir="/work/deep/er", uid=os.geteuid()),
            task("two", 'echo "${HOME-none}$B"; echo $BUILDOMAT_TASK_ID >&2', env={"B": "b"}, env_clear=True),
            task("three", "exit 3"),
            task("never", "echo never"),
        ],
        env={"B": "all"},
    )
    ended = job.finish()
    assert (ended["result"], ended["task"], ended["exit_code"]) == ("failed", 2, 3)
    assert 'task 2 "three"' in ended["reason"]
    one = [str(job.root / "work/deep/er"), "aall", str(os.geteuid())]
    assert job.plane.lines("stdout") == [*one, "noneb"]
    events = [job.plane.events[number] for number in sorted(job.plane.events)]
    assert [each["task"] for each in events if each["stream"] == "stdout"] == [0, 0, 0, 1]
    (exited,) = job.plane.lines("task")
    assert exited.endswith('exit code 3: task 2 "three"')


def test_a_job_that_cannot_become_root_is_nobody_else(worker):
    """SEC-2: here the agent has no user for its jobs, so there is only its own."""
    job = worker(tasks=[task("good", "true"), task("bad", "echo never", uid=os.geteuid() + 1)])
    ended = job.finish()
    here = f"here a job has only user {os.geteuid()} and group {os.getegid()}"
    assert ended["result"] == "failed"
    assert ended["reason"] == f'task 1 "bad" could not start: it asks for user {os.geteuid() + 1}, but {here}'
    assert job.plane.lines("stdout") == []


@pytest.mark.parametrize("own", [None, Account("jobs", 990, 991, "/tmp/home")])
def test_only_who_may_become_root_may_be_somebody_else(own):
    """SEC-2: whoever could be root could reach the agent."""
    ids = (own.uid, own.gid) if own else (os.geteuid(), os.getegid())
    for uid, gid in ((None, None), (ids[0], None), (None, ids[1]), ids):
        assert task_account(own, uid, gid) is own
    for uid, gid in ((ids[0] + 1, None), (None, ids[1] + 1), (ids[0], ids[1] + 1), (ids[0] + 1, ids[1])):
        with pytest.raises(PermissionError, match=r"it asks for .*, but here a job has only user"):
            task_account(own, uid, gid)


def test_who_may_become_root_may_be_anybody():
    assert task_account(BUILD, 12345, 12345) is BUILD
    root = task_account(BUILD, 0, None)
    assert (root.name, root.uid, root.gid, root.home) == ("root", 0, 0, "/root")
    assert (task_account(BUILD, 0, 5).gid, task_account(BUILD, 0, 5).uid) == (5, 0)
    nobody = task_account(BUILD, 3999999999, None)
    assert (nobody.name, nobody.uid, nobody.gid, nobody.home) == ("3999999999", 3999999999, 3999999999, "/")
    assert task_account(BUILD, None, 7).gid == 7


def test_tasks_run_as_their_users_on_a_machine_of_their_own(machine):
    """With nothing of the agent's in between: the script is theirs, and so is the folder that is made for them."""
    who = 'echo "$(id -u):$(id -g) $USER $HOME $(pwd) $(stat -c %u:%g .)"'
    job = machine(
        tasks=[
            task("build", who),
            task("root", f"{who}; bmat factory name; touch /root/here", uid=0, gid=0, workdir="/root"),
            task("other", who, uid=54321, workdir="/srv/other"),
        ]
    )
    assert job.outcome()["result"] == "succeeded", job.plane.lines()
    assert output(job) == [
        "12345:12345 build /home/build /work 12345:12345",
        "0:0 root /root /root 0:0",
        "local",
        "54321:54321 54321 / /srv/other 54321:54321",
    ]


def test_on_a_machine_without_root_for_jobs_no_task_is_root(machine):
    """SEC-2."""
    job = machine(tasks=[task("good", "id -u"), task("root", "id -u", uid=0)], sudo=False)
    assert job.outcome()["result"] == "failed"
    assert "it asks for user 0, but here a job has only user 12345 and group 12345" in job.outcome()["reason"]
    assert output(job) == ["12345"]
