"""Jobs, end to end: everything real but the account."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import SITE, Local

pytestmark = pytest.mark.xdist_group("jobs")

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_hello_runs_and_its_output_comes_home(local: Local, tmp_path: Path) -> None:
    done = local.cli("job", "run", str(EXAMPLES / "hello.sh"))
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout.lower()
    job = local.json("job", "list")[0]
    (output,) = local.json("job", "outputs", job["id"])
    copied = local.cli("job", "copy", job["id"], output["path"], str(tmp_path / "copy"))
    assert copied.returncode == 0, copied.stderr
    assert (tmp_path / "copy").stat().st_size == output["size"]
    local.put_back()


def test_a_plan_and_the_graph_tell_what_a_job_would_wait_for(local: Local) -> None:
    first = local.submit("sleep 600\n", "-r", "bench")
    local.until(lambda: local.job(first)["state"] == "running")
    script = local.job_file("true\n")
    plan = local.json("job", "run", script, "-r", "bench", "--plan")
    assert [(wait["pool"], wait["position"]) for wait in plan["waits_for"]] == [("resource/bench", 1)]
    assert f"given back by {first}" in local.cli("job", "run", script, "-r", "bench", "--plan").stdout
    refused = local.cli("job", "run", script, "-r", "bensch", "--plan")
    assert (refused.returncode, "did you mean 'bench'?" in refused.stderr) == (2, True)
    assert f'"resource/bench" -> "{first}"' in local.cli("pool", "show", "--graph").stdout
    graph = local.json("pool", "show", "--graph")
    assert (graph["cycle"], graph["left_out"]) == ([], 0)
    local.cli("job", "cancel", first)
    local.settled(first)
    local.put_back()


def test_a_running_job_is_cancelled_and_still_sends_its_outputs(local: Local) -> None:
    script = "trap 'echo evidence > $PENSTOCK_WORK/why.txt; exit 1' TERM\necho ready\nsleep 600 & wait\n"
    job = local.submit(script, "-O", "/work/*.txt")
    local.until(lambda: any(line["payload"] == "ready" for line in local.log(job)))
    assert local.cli("job", "cancel", job).returncode == 0
    assert local.settled(job)["outcome"] == "cancelled"
    assert [output["path"] for output in local.json("job", "outputs", job)] == ["/work/why.txt"]
    local.put_back()
    assert not local.agents()


def test_a_waiting_job_is_cancelled_at_once(local: Local) -> None:
    first = local.submit("sleep 600\n", "-r", "bench")
    local.until(lambda: local.job(first)["state"] == "running")
    second = local.submit("true\n", "-r", "bench")
    local.until(lambda: local.call("GET", f"/v1/jobs/{second}/why").json()["blocked_on"])
    assert local.cli("job", "cancel", second).returncode == 0
    assert local.settled(second)["outcome"] == "cancelled"
    local.cli("job", "cancel", first)
    local.settled(first)
    local.put_back()


def post(name: str, on: str, script: str) -> str:
    return "".join(f"#: {line}\n" for line in ("[[post]]", f'name = "{name}"', f'on = "{on}"', f'script = "{script}"'))


POSTS = (
    '#: name = "posts"\n#: variety = "basic"\n#: output_rules = ["/work/cores"]\n#:\n'
    + post("collect", "failure", "echo found cores; touch cores")
    + post("praise", "success", "echo well done")
    + post("tidy", "always", "echo tidied")
)


def test_a_failing_job_passes_its_failure_on(local: Local) -> None:
    done = local.cli("job", "run", local.job_file(POSTS + "echo trouble >&2\nexit 3\n"))
    assert done.returncode == 1
    assert "exited with code 3" in done.stderr
    job = local.json("job", "list")[0]
    assert job["exit_code"] == 3
    said = [event["payload"] for event in local.log(job["id"]) if event["stream"] == "stdout"]
    assert said == ["found cores", "tidied"], "the post for success ran, or one of the others did not"
    assert [output["path"] for output in local.json("job", "outputs", job["id"])] == ["/work/cores"]
    local.put_back()


def test_a_job_that_runs_too_long_is_stopped(local: Local) -> None:
    job = local.submit("sleep 600\n", "--timeout", "1s")
    settled = local.settled(job)
    assert settled["outcome"] == "failed"
    assert "timeout" in settled["reason"]
    local.put_back()


def test_many_jobs_at_once_all_settle(local: Local) -> None:
    jobs = [local.submit(f"echo {number}\n", *(["-r", "licence"] if number % 2 else [])) for number in range(8)]
    assert {local.settled(job)["outcome"] for job in jobs} == {"succeeded"}
    local.put_back()


def test_a_warm_worker_goes_on_to_the_next_job_and_takes_nothing_along(local: Local, tmp_path: Path) -> None:
    """UNIT-2: the second job runs on the same machine, and finds none of the first one's files and processes."""
    warm = tmp_path / "warm.toml"
    kept = SITE.read_text().replace("limit = 4", 'limit = 4\nwarm = { max = 1, idle = "10m" }')
    warm.write_text(kept.replace('lease = "8s"', 'lease = "2m"'))  # a machine that stands still for long keeps it too
    with local.having(warm):
        _use_a_warm_worker(local)
    local.put_back()
    assert local.agents() == set()


def _use_a_warm_worker(local: Local) -> None:
    dirty = 'echo mine > "$PENSTOCK_WORK/left"; sleep 600 & echo "$PENSTOCK_WORKER_ID"'
    first = local.submit(dirty, "-O", "/work/left")
    assert local.settled(first)["outcome"] == "succeeded"
    local.until(lambda: [one["state"] for one in local.call("GET", "/v1/workers").json()["items"]] == ["idle"])
    pool = "/v1/pools/target/ubuntu-24.04"
    local.until(lambda: (found := local.call("GET", pool).json())["free"] == 4 and found["warm"] == 1)
    look = 'echo "$PENSTOCK_WORKER_ID"; ls "$PENSTOCK_WORK"; test "$(cat "$PENSTOCK_INPUT/first/work/left")" = mine'
    for how in ("", "; 1 of them from this machine's copies"):
        job = local.submit(look, "-d", f"first={first}")
        assert local.settled(job)["outcome"] == "succeeded"
        assert _said(local, job) == _said(local, first)
        assert f"fetched 1 input(s), 5 B{how}" in [line["payload"] for line in local.log(job)]
        local.until(lambda: [one["state"] for one in local.call("GET", "/v1/workers").json()["items"]] == ["idle"])


def _said(local: Local, job: str) -> list[str]:
    return [line["payload"] for line in local.log(job) if line["stream"] == "stdout"]
