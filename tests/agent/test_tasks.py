"""What a task runs, in which environment, and which of its output arrives."""

import shlex
import sys

from tests.agent.control_plane import WORKER

WRITE_IN_TURN = """\
import array, fcntl, os, termios, time

def write(descriptor, text):
    os.write(descriptor, text.encode())
    left = array.array("i", [1])
    while left[0]:
        time.sleep(0.001)
        fcntl.ioctl(descriptor, termios.FIONREAD, left)

for i in (1, 2, 3):
    write(1, f"out {i}\\n")
    write(2, f"err {i}\\n")
write(1, "partial")
"""
"""Writes to both pipes, each time only when the agent has read what is in them."""


def test_a_job_succeeds(worker):
    job = worker(script="echo hello; pwd; ls $PENSTOCK_INPUT; cat; echo end")
    assert job.finish() == {
        "result": "succeeded",
        "reason": None,
        "task": None,
        "exit_code": 0,
        "signal": None,
        "broken": None,
        "failure": None,
        "outputs": [],
    }
    assert job.plane.lines("stdout") == ["hello", str(job.root / "work"), "end"]
    assert job.plane.lines("task", "worker") == [], "a good task needs no line that everybody reads"
    first, *_, last = job.plane.lines("detail")
    assert first == 'starting task 0: "build"'
    assert last.startswith("process exited: duration ")
    assert last.endswith('exit code 0: task 0 "build"')


def test_lines_of_both_streams_arrive_in_order_with_their_times(worker):
    job = worker(script=f"{sys.executable} -I - <<'END'\n{WRITE_IN_TURN}END\n")
    assert job.finish()["result"] == "succeeded", job.plane.lines()
    expected = [f"{stream} {i}" for i in (1, 2, 3) for stream in ("out", "err")]
    assert job.plane.lines("stdout", "stderr") == [*expected, "partial"]
    times = [job.plane.events[number]["time"] for number in sorted(job.plane.events)]
    assert times == sorted(times)
    assert all(len(time) == len("2030-01-01T00:00:00.000Z") and time.endswith("Z") for time in times)


def test_all_of_a_long_output_arrives(worker):
    job = worker(script="seq 1 20000", limits={"batch_events": 500})
    job.finish()
    assert job.plane.lines("stdout") == [str(i) for i in range(1, 20001)]


def test_a_line_without_end_arrives_in_pieces(worker):
    job = worker(script="head -c 1000000 /dev/zero | tr '\\0' x")
    job.finish()
    lines = job.plane.lines("stdout")
    assert max(map(len, lines)) == 4096
    assert "".join(lines) == "x" * 1000000
    assert "stdout: a line of 1000000 bytes is shown as 245 lines of at most 4096 bytes" in job.plane.lines("task")


def test_output_that_is_not_utf8_and_characters_that_are_cut(worker):
    job = worker(script="printf 'a\\xff\\xfeb\\n'; printf 'é%.0s' {1..9}; printf '\\0\\n\\n'", limits={"line_bytes": 5})
    job.finish()
    assert job.plane.lines("stdout") == ["a\ufffd", "\ufffdb", *["éé"] * 4, "é\0", ""]
    assert [line for line in job.plane.lines("task") if line.startswith("stdout: ")] == [
        "stdout: there were bytes that are not UTF-8; each is shown as \ufffd",
        "stdout: a line of 8 bytes is shown as 2 lines of at most 5 bytes",
        "stdout: a line of 19 bytes is shown as 5 lines of at most 5 bytes",
    ]


def test_a_failing_task_skips_the_rest(worker):
    tasks = [{"name": name, "script": script} for name, script in (("a", "true"), ("b", "exit 3"), ("c", "echo no"))]
    job = worker(tasks=tasks)
    outcome = {
        "result": "failed",
        "reason": 'task 1 "b" exited with code 3',
        "task": 1,
        "exit_code": 3,
        "signal": None,
        "broken": None,
        "failure": {"kind": "exited", "evidence": {"exit_code": 3}, "task": 1, "task_name": "b", "lines": []},
        "outputs": [],
    }
    assert job.finish() == outcome
    assert job.plane.lines("stdout") == []


def test_a_signal_is_reported(worker):
    outcome = worker(script="kill -9 $$").finish()
    assert outcome["reason"].startswith('task 0 "build" was killed by signal 9 (SIGKILL): perhaps for lack of memory')
    assert (outcome["exit_code"], outcome["signal"]) == (None, 9)


def test_a_task_that_cannot_start(worker):
    job = worker(tasks=[{"name": "a", "script": "touch file"}, {"name": "b", "script": "", "workdir": "/work/file"}])
    outcome = job.finish()
    assert outcome["result"] == "failed"
    assert outcome["reason"].startswith('task 1 "b" could not start: ')
    assert "work/file" in outcome["reason"]


def test_a_job_may_remove_its_temporary_files(worker):
    tasks = [{"name": "tidy", "script": "rm -rf $TMPDIR"}, {"name": "next", "script": "bmat factory name"}]
    job = worker(tasks=tasks)
    assert job.finish()["result"] == "succeeded"
    assert job.plane.lines("stdout") == ["local"]


def environment_of(job):
    assert job.finish()["result"] == "succeeded"
    return dict(shlex.split(line)[0].partition("=")[::2] for line in job.plane.lines("stdout"))


def test_the_environment(worker):
    job = worker(
        script="while IFS= read -r -d '' v; do printf '%q\\n' \"$v\"; done < /proc/self/environ",
        env={"A": "b c"},
    )
    seen, root = environment_of(job), str(job.root)
    assert seen.pop("LANG") == seen.pop("LC_ALL")
    assert seen.pop("USER") == seen.pop("LOGNAME")
    assert seen.pop("PATH").startswith(f"{root}/home/.cargo/bin:{root}/bin:/usr/local/bin:/usr/bin:/bin:")
    assert seen == {
        **{"HOME": f"{root}/home", "TMPDIR": f"{root}/tmp", "TZ": "UTC", "CI": "true", "A": "b c"},
        **{"BUILDOMAT_JOB_ID": "job-1", "BUILDOMAT_TASK_ID": "0"},
        **{"PENSTOCK_JOB_ID": "job-1", "PENSTOCK_ATTEMPT": "2", "PENSTOCK_TARGET": "here"},
        **{"PENSTOCK_WORKER_ID": WORKER, "PENSTOCK_DEADLINE": "2030-01-01T00:00:00Z"},
        **{"PENSTOCK_ROOT": root, "PENSTOCK_WORK": f"{root}/work", "PENSTOCK_INPUT": f"{root}/input"},
    }


def test_a_cleared_environment_keeps_the_workers_id(worker):
    """JOB-2: by it the job's processes are found."""
    script = "while IFS= read -r -d '' v; do printf '%q\\n' \"$v\"; done < /proc/self/environ"
    task = {
        "name": "bare",
        "script": script,
        "env": {"B": "1", "PENSTOCK_WORKER_ID": "other"},
        "env_clear": True,
    }
    assert environment_of(worker(tasks=[task])) == {"B": "1", "PENSTOCK_WORKER_ID": WORKER}


def test_a_job_cannot_override_the_agents_variables(worker):
    """SEC-2: a job cannot pass for another."""
    names = ("PENSTOCK_JOB_ID", "PENSTOCK_ATTEMPT", "PENSTOCK_WORKER_ID", "PENSTOCK_ROOT", "BUILDOMAT_JOB_ID")
    task = {"name": "liar", "script": "env", "env": dict.fromkeys(names[1:], "lie")}
    job = worker(tasks=[task], env={"PENSTOCK_JOB_ID": "lie", "PENSTOCK_OTHER": "mine", "HOME": "/elsewhere"})
    assert job.finish()["result"] == "succeeded"
    seen = dict(line.partition("=")[::2] for line in job.plane.lines("stdout"))
    assert [seen[name] for name in names] == ["job-1", "2", WORKER, str(job.root), "job-1"]
    assert (seen["PENSTOCK_OTHER"], seen["HOME"]) == ("mine", "/elsewhere")
