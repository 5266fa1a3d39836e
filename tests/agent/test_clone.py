"""The token and the clone, before the script of a job that belongs to a commit."""

import re
import stat

import pytest

from tests.agent.forge import REPOSITORY, TOKEN, Forge, git


@pytest.fixture
def forge(tmp_path):
    with Forge(tmp_path / "forge") as made:
        yield made


def build(script):
    return [{"name": "build", "script": script, "env": {}, "env_clear": False, "workdir": f"/work/{REPOSITORY}"}]


def cloned(worker, forge, script="pwd", **changes):
    job = worker(tasks=build(script), **{"repository": forge.told(), **changes})
    job.plane.store["GITHUB_TOKEN"] = (TOKEN, True)
    return job


def began(job):
    return [line for line in job.plane.lines("detail") if line.startswith("starting")]


def test_the_script_begins_in_the_repository_at_its_commit(worker, forge):
    script = (
        "cat a; pwd; git rev-parse HEAD; git rev-parse --abbrev-ref HEAD; git status --porcelain; stat -c %a ~/.netrc"
    )
    job = cloned(worker, forge, script)
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    where = job.root / "work" / REPOSITORY
    assert job.plane.lines("stdout")[-5:] == ["two", str(where), forge.second, "main", "600"]
    assert began(job) == [
        'starting task 0: "authentication"',
        'starting task 1: "clone repository"',
        'starting task 2: "build"',
    ]
    assert f"{forge.url}/{REPOSITORY} is in {where}, at {forge.second}" in job.plane.lines("stdout")
    netrc = job.root / "home/.netrc"
    assert stat.S_IMODE(netrc.stat().st_mode) == 0o600
    one = f"login x-access-token\npassword {TOKEN}\n"
    assert netrc.read_text() == f"machine 127.0.0.1\n{one}machine api.127.0.0.1\n{one}"


def test_the_token_is_in_no_log_and_in_no_file_of_the_repository(worker, forge):
    """SEC-1: also when a script prints it."""
    job = cloned(worker, forge, "cat ~/.netrc; git remote -v; env")
    assert job.finish()["result"] == "succeeded"
    assert TOKEN not in str(job.plane.events)
    assert "password ***" in job.plane.lines("stdout")
    for path in (job.root / "work").rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path
    assert TOKEN not in job.log()


def test_a_commit_of_a_branch_is_checked_out_as_that(worker, forge):
    told = forge.told(sha=forge.first, branch="feature/x")
    job = cloned(worker, forge, "git rev-parse --abbrev-ref HEAD; cat a; git log --oneline | wc -l", repository=told)
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout")[-3:] == ["feature/x", "one", "1"]


def test_a_job_without_a_clone_has_the_token(worker, forge):
    job = worker(script="pwd; ls; test -f ~/.netrc && echo netrc", repository=forge.told(clone=False))
    job.plane.store["GITHUB_TOKEN"] = (TOKEN, True)
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout")[-2:] == [str(job.root / "work"), "netrc"]
    assert not any(path.startswith("/oxide") for path, _ in forge.requests)


def test_a_job_without_a_repository_has_no_token(worker):
    job = worker(script="ls -A ~", env={"GITHUB_REPOSITORY": REPOSITORY, "GITHUB_SHA": "0" * 40})
    job.plane.store["GITHUB_TOKEN"] = (TOKEN, True)
    assert job.finish()["result"] == "succeeded"
    assert (began(job), job.plane.lines("stdout")) == (['starting task 0: "build"'], [])
    assert "get" not in job.plane.calls


def test_broken_connections_are_retried(worker, forge):
    def misbehave(path, count):
        return 503 if path.endswith("/info/refs") and count in (1, 2) else None

    forge.misbehave = misbehave
    job = cloned(worker, forge)
    assert job.finish()["result"] == "succeeded"
    lines = job.plane.lines("stdout")
    assert any("503" in line for line in lines), lines
    assert sum(line.startswith("try ") and "of 5 failed: fatal: unable to access" in line for line in lines) == 2


def test_an_unreachable_forge_leads_to_the_next_attempt(worker, forge):
    forge.misbehave = lambda path, count: 503
    job = cloned(worker, forge, posts=[{"name": "after", "on": "always", "script": "echo after"}])
    told = job.finish()
    assert told["result"] == "unprepared"
    start = "the repository oxide/hubris could not be cloned: fatal: unable to access"
    assert told["reason"].startswith(start)
    assert told["failure"]["kind"] == "clone_failed"
    assert (told["failure"]["task"], told["failure"]["task_name"]) == (1, "clone repository")
    known = told["failure"]["evidence"]
    assert (known["repository"], known["commit"], known["exit_code"]) == (REPOSITORY, forge.second, 75)
    assert "503" in known["error"]
    assert len(forge.requests) == 5
    assert "after" not in job.plane.lines("stdout")


def test_a_missing_repository_fails_the_job_at_once(worker, forge):
    job = cloned(worker, forge, repository=forge.told(url=f"{forge.url}/oxide/none"))
    told = job.finish()
    assert (told["result"], told["exit_code"], told["failure"]["kind"]) == ("failed", 1, "clone_failed")
    assert "not found" in told["reason"]
    assert not any(line.startswith("try ") for line in job.plane.lines("stdout"))
    assert not any('"build"' in line for line in began(job))


def test_a_token_that_is_refused(worker, forge):
    job = worker(tasks=build("true"), repository=forge.told())
    job.plane.store["GITHUB_TOKEN"] = ("ghs_of_somebody_else", True)
    told = job.finish()
    assert (told["result"], told["failure"]["kind"]) == ("failed", "clone_failed")
    assert "ghs_of_somebody_else" not in str(job.plane.events)


def test_an_empty_token_ends_the_attempt_at_once(worker, forge):
    job = worker(tasks=build("true"), repository=forge.told())
    job.plane.store["GITHUB_TOKEN"] = ("", False)
    told = job.finish()
    assert (told["result"], told["failure"]["kind"]) == ("unprepared", "authentication_failed")
    assert told["reason"].endswith("GITHUB_TOKEN is empty; the job's log says why there is none")


def test_a_job_waits_for_its_token(worker, forge):
    job = worker(tasks=build("echo there"), repository=forge.told())
    agent = job.start()
    job.plane.wait_for(lambda: "get" in job.plane.calls)
    job.plane.store["GITHUB_TOKEN"] = (TOKEN, True)
    assert agent.wait(25) == 0
    assert job.plane.lines("stdout")[-1] == "there"


def test_a_job_is_cancelled_while_it_waits_for_its_token(worker, forge):
    job = worker(tasks=build("echo there"), repository=forge.told())
    agent = job.start()
    job.plane.wait_for(lambda: "get" in job.plane.calls)
    job.plane.cancel = True
    assert agent.wait(25) == 0
    told = job.outcome()
    assert (told["result"], told["task"], told["failure"]["kind"]) == ("cancelled", 0, "cancelled")
    assert "there" not in job.plane.lines("stdout")


def test_the_timeout_counts_during_a_slow_clone(worker, forge):
    import threading

    never = threading.Event()
    forge.misbehave = lambda path, count: never.wait(60) and None
    job = cloned(worker, forge, timeout_seconds=2)
    told = job.finish()
    never.set()
    assert (told["result"], told["task"]) == ("timed_out", 1)


def test_caches_are_restored_into_the_clone(worker, forge):
    job = cloned(worker, forge, "mkdir out; echo built > out/x; bmat cache save out out --key k")
    assert job.finish()["result"] == "succeeded"
    plane = job.plane
    for name in ("token", "progress"):
        (job.folder / name).unlink()
    import shutil

    shutil.rmtree(job.root)
    wanted = {"name": "out", "paths": [f"{REPOSITORY}/out"], "key": "k", "restore_keys": []}
    again = cloned(worker, forge, "cat a out/x", caches=[wanted])
    again.plane.caches, again.plane.kept = plane.caches, plane.kept
    assert again.finish()["result"] == "succeeded"
    assert again.plane.lines("stdout")[-2:] == ["two", "built"]


def test_a_key_may_contain_the_digest_of_a_cloned_file(worker, forge):
    """Caches are restored after the clone, for that."""
    key = f'k-{{{{ hash "{REPOSITORY}/a" }}}}'
    wanted = {"name": "out", "paths": [f"{REPOSITORY}/out"], "key": key, "restore_keys": ["k-"]}
    job = cloned(worker, forge, "mkdir out; echo built > out/x", caches=[wanted])
    assert job.finish()["result"] == "succeeded"
    (kept,) = job.plane.caches.values()
    assert re.fullmatch("k-[0-9a-f]{64}", kept["key"]), job.plane.lines()
    assert any(f"'{kept['key']}'" in line for line in job.plane.lines("worker") if "miss" in line)


def test_a_post_runs_where_the_script_did(worker, forge):
    job = cloned(worker, forge, "true", posts=[{"name": "after", "on": "always", "script": "pwd"}])
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout")[-1] == str(job.root / "work" / REPOSITORY)


def test_the_log_shows_the_progress_of_a_clone(worker, forge):
    for number in range(40):
        (forge.work / f"f{number}").write_text(str(number))
    sha = forge.commit("b", "more")
    git("push", "--quiet", str(forge.bare), f"{sha}:refs/heads/main", cwd=forge.work)
    job = cloned(worker, forge, repository=forge.told(sha=sha))
    assert job.finish()["result"] == "succeeded"
    lines = job.plane.lines("stdout")
    assert any("Receiving objects: 100%" in line for line in lines), lines
    assert not any("\r" in line for line in lines)
