"""What `make run` does, and that stopping it at any moment leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.sources import ROOT as SOURCES

EXAMPLES = SOURCES / "examples"
WAIT_SECONDS = 240  # for machines that do much else


def start(folder: Path, file: Path) -> subprocess.Popen[str]:
    """Start a run that keeps everything below a folder, as the leader of a process group, like a shell does."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES / "functions"), "TMPDIR": str(folder), "HOME": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-m", "penstock.local.run", str(file)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def left(folder: Path) -> list[str]:
    """Commands of processes that have to do with a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                about = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                ended = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                continue
            if str(folder).encode() in about and not ended:
                found.append((entry / "cmdline").read_text().replace("\0", " "))
    return found


def assert_nothing_is_left(folder: Path) -> None:
    until = time.monotonic() + WAIT_SECONDS
    while left(folder) and time.monotonic() < until:
        time.sleep(0.05)
    assert left(folder) == []
    assert list(folder.glob("penstock-run-*")) == []


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
class TestRun:
    def test_make_run_shows_output_decisions_and_price_of_a_job(self, tmp_path: Path) -> None:
        run = start(tmp_path, EXAMPLES / "hello.sh")
        said, service = run.communicate(timeout=WAIT_SECONDS)
        assert run.returncode == 0
        decided = [line for line in service.splitlines() if line.startswith("|=|")]
        *before, last = decided
        assert " (target ubuntu-24.04, host " in last
        # A slow machine says meanwhile what the job waits for; what that is depends on when it looks.
        assert [line for line in before if "the job waits for" not in line] == []
        log, _, cost = said.partition("\ncost\n")
        assert "hello" in log
        assert "at AWS list prices" in cost
        assert "DynamoDB" in cost
        assert_nothing_is_left(tmp_path)

    def test_make_run_exits_with_the_status_of_a_failed_job(self, tmp_path: Path) -> None:
        run = start(tmp_path, EXAMPLES / "fails.sh")
        run.communicate(timeout=WAIT_SECONDS)
        assert run.returncode == 1
        assert_nothing_is_left(tmp_path)

    def test_make_run_refuses_a_missing_file(self, tmp_path: Path) -> None:
        run = start(tmp_path, tmp_path / "nowhere.sh")
        _, said = run.communicate(timeout=WAIT_SECONDS)
        assert run.returncode == 2
        assert "nowhere.sh" in said

    @pytest.mark.parametrize(
        ("moment", "number"),
        [
            pytest.param("starting the local cloud", signal.SIGINT, marks=pytest.mark.long),
            ("deploying", signal.SIGINT),
            pytest.param("applying", signal.SIGTERM, marks=pytest.mark.long),
            pytest.param("job 0", signal.SIGINT, marks=pytest.mark.long),
            ("running on", signal.SIGHUP),
            pytest.param("stopping", signal.SIGINT, marks=pytest.mark.long),
        ],
    )
    def test_interrupting_make_run_at_any_moment_leaves_nothing(
        self, tmp_path: Path, moment: str, number: signal.Signals
    ) -> None:
        job = tmp_path / "long.sh"
        job.write_text("#!/bin/bash\necho begun\nsleep 60\n" if moment != "stopping" else "#!/bin/bash\n:\n")
        run = start(tmp_path, job)
        assert run.stderr is not None
        for line in run.stderr:
            if moment in line:
                break
        for _ in range(3):
            os.killpg(run.pid, number)
            time.sleep(0.05)
        run.communicate(timeout=WAIT_SECONDS)
        assert run.returncode == (0 if moment == "stopping" else 128 + number)
        assert_nothing_is_left(tmp_path)
