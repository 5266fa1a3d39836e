"""Runs the same tests many times, every fourth run beside a busy loop on each processor, and counts the failures.

    python -m tests.flaky 20 .venv/bin/python -m pytest -n 4 tests/agent

Each run leaves its output and its JUnit report in build/flaky. The exit status is 1 when any run failed. Twenty runs
take hours: called again on the same commit with the same command, it goes on with the runs that are missing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

FOLDER = Path("build/flaky")
BUSY_EVERY = 4
BURN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"  # ends with its parent


def main(runs: int, command: list[str]) -> int:
    """Run a pytest command so many times, those of an earlier call included. Return 0 if all runs passed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    forget_runs_of_others("\n".join([commit(), *command]))
    codes = [_code(number, runs, command) for number in range(1, runs + 1)]
    print(report(codes, failures(range(1, runs + 1))))
    return int(any(codes))


def _code(number: int, runs: int, command: list[str]) -> int:
    found = earlier(number, runs)
    return run(number, runs, command) if found is None else found


def commit() -> str:
    """Name what is tested; anew for each call if that is not committed."""
    try:
        head, changed = (_git(*words) for words in (["rev-parse", "HEAD"], ["status", "--porcelain"]))
    except subprocess.CalledProcessError:
        return str(time.time())
    return f"{head} {time.time()}" if changed else head


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.strip()


def forget_runs_of_others(subject: str) -> None:
    """Delete the results of earlier calls, unless they tested the same."""
    path = FOLDER / "subject"
    if path.exists() and path.read_text() == subject:
        return
    for old in FOLDER.glob("run-*"):
        old.unlink()
    path.write_text(subject)


def earlier(number: int, runs: int) -> int | None:
    """The exit code of a run of an earlier call; None if there is none."""
    path = _path(number, "code")
    if not path.exists():
        return None
    code = int(path.read_text())
    print(f"run {number} of {runs}, in an earlier call: {result(number, code)}", flush=True)
    return code


def result(number: int, code: int) -> str:
    """Say how a run ended."""
    return "passed" if code == 0 else f"failed with code {code}, see {_path(number, 'log')}"


def run(number: int, runs: int, command: list[str]) -> int:
    """Run the tests once. Return pytest's exit code."""
    busy = is_busy(number)
    began = time.monotonic()
    with _path(number, "log").open("wb") as log, burners(os.cpu_count() or 1 if busy else 0):
        code = subprocess.run(
            [*command, f"--junit-xml={_path(number, 'xml')}"], stdout=log, stderr=subprocess.STDOUT, check=False
        ).returncode
    _path(number, "code").write_text(str(code))
    load = "beside busy processors" if busy else "alone"
    print(f"run {number} of {runs}, {load}: {result(number, code)}, {time.monotonic() - began:.0f} s", flush=True)
    return code


def is_busy(number: int) -> bool:
    """Tell whether a run has busy loops beside it."""
    return number % BUSY_EVERY == 0


@contextmanager
def burners(count: int) -> Iterator[None]:
    """Keep so many processors busy."""
    started = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def failures(runs: range) -> dict[str, list[int]]:
    """Return the runs in which each test failed, from the JUnit reports."""
    found: dict[str, list[int]] = defaultdict(list)
    for number in runs:
        path = _path(number, "xml")
        for case in ElementTree.parse(path).iter("testcase") if path.exists() else ():
            if case.find("failure") is not None or case.find("error") is not None:
                found[f"{case.get('classname')}::{case.get('name')}"].append(number)
    return found


def report(codes: list[int], failed: dict[str, list[int]]) -> str:
    """Return the summary: how many runs passed, then the tests that failed, most often first."""
    lines = [f"{codes.count(0)} of {len(codes)} runs passed"]
    for test, runs in sorted(failed.items(), key=lambda each: (-len(each[1]), each[0])):
        numbers = ", ".join(f"{number} (busy)" if is_busy(number) else str(number) for number in runs)
        lines.append(f"{test}: failed {len(runs)} of {len(codes)} times, in run {numbers}")
    return "\n".join(lines)


def _path(number: int, kind: str) -> Path:
    return FOLDER / f"run-{number:02}.{kind}"


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
