"""Counting which test failed how often."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import flaky

TESTS = """
import pathlib
def test_good(): pass
def test_every_second_time():
    runs = pathlib.Path("runs")
    runs.write_text((runs.read_text() if runs.exists() else "") + "x")
    assert len(runs.read_text()) % 2
"""


def test_each_failure_is_counted_with_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "test_some.py").write_text(TESTS)
    assert flaky.main(4, [sys.executable, "-m", "pytest", "test_some.py"]) == 1
    *runs, passed, failed = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in runs] == [
        "run 1 of 4, alone", "run 2 of 4, alone", "run 3 of 4, alone", "run 4 of 4, beside busy processors",
    ]  # fmt: skip
    assert passed == "2 of 4 runs passed"
    assert failed == "test_some::test_every_second_time: failed 2 of 4 times, in run 2, 4 (busy)"


def test_all_runs_that_pass_are_a_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert flaky.main(2, [sys.executable, "-c", ""]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 of 2 runs passed"


def test_an_ended_call_goes_on_with_the_runs_that_are_missing_on_the_same_commit_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(flaky, "commit", lambda: "c0ffee")
    fails, command = [sys.executable, "-c", "raise SystemExit(3)"], [sys.executable, "-c", ""]
    assert flaky.main(1, fails) == 1
    assert flaky.main(2, fails) == 1
    assert capsys.readouterr().out.splitlines()[2].startswith("run 1 of 2, in an earlier call: failed with code 3, see")
    assert flaky.main(1, command) == 0
    monkeypatch.setattr(flaky, "commit", lambda: "decaf")
    assert flaky.main(1, command) == 0
    assert "in an earlier call" not in capsys.readouterr().out


def test_what_is_not_committed_is_tested_anew_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert flaky.commit() != flaky.commit(), "there is no repository"
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run(["git", *words], check=True)
    assert flaky.commit() == flaky.commit()
    (tmp_path / "new").touch()
    assert flaky.commit() != flaky.commit()
