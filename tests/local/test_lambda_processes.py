"""Processes that a fork server makes are like those that were started, and as easy to end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from penstock.drivers.factories.process import kill, started, tagged
from penstock.local.lambda_processes import PIPE_BYTES, Forked, ForkServer, Log

TAG = "PENSTOCK_TESTED"

SCRIPT = """
import os, random, signal, sys
print("began", file=sys.stderr, flush=True)
for line in sys.stdin:
    if line == "exit\\n":
        sys.exit("as told")
    print(eval(line), flush=True)
print("nobody is left", file=sys.stderr)
"""
SECONDS = 60.0  # for machines that do much else


def made(folder: Path) -> ForkServer:
    """A server, and all that it forks, tagged with a folder."""
    (folder / "code").mkdir()
    (folder / "code" / "shared.py").write_text("import os\nmade_in = os.getpid()\n")
    (folder / "script.py").write_text(SCRIPT)
    return ForkServer(folder / "script.py", [folder / "code"], {**os.environ, TAG: str(folder)})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> ForkServer:
    return made(tmp_path_factory.mktemp("server"))


def gone(tag: Path) -> None:
    """Wait until nothing is left of a server and what it made."""
    until(lambda: tagged(TAG, str(tag)) == set())


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.01)


def asked(forked: Forked, expression: str) -> str:
    """What an expression is in a process."""
    forked.stdin.write(expression + "\n")
    return forked.stdout.readline().strip()


def test_each_process_has_its_own_environment_folder_and_streams(server: ForkServer, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        forked = server.start({"NAME": name}, tmp_path / name)
        assert asked(forked, "dict(os.environ)") == str({"NAME": name})
        assert asked(forked, "os.getcwd()") == str(tmp_path / name)
        assert int(asked(forked, "os.getpid()")) == forked.pid
        assert forked.stderr.readline() == "began\n"
        forked.kill()


def test_each_process_has_its_own_random_numbers(server: ForkServer, tmp_path: Path) -> None:
    """Dice are thrown anew in each, also those of who forgot to."""
    assert len({asked(server.start({}, tmp_path), "random.random()") for _ in range(3)}) == 3


def test_signal_handlers_are_the_defaults(server: ForkServer, tmp_path: Path) -> None:
    own = "[signal.getsignal(each) for each in sorted(signal.valid_signals())]"
    plain = subprocess.run([sys.executable, "-c", f"import signal; print({own})"], capture_output=True, text=True)
    forked = server.start({}, tmp_path)
    assert asked(forked, own) == plain.stdout.strip()


def test_the_functions_code_comes_first_on_the_path(server: ForkServer, tmp_path: Path) -> None:
    forked = server.start({}, tmp_path)
    assert int(asked(forked, "__import__('shared').made_in")) == forked.pid
    assert asked(forked, "__import__('sys').path[0]").endswith("/code")


def test_the_end_of_a_process_is_noticed(server: ForkServer, tmp_path: Path) -> None:
    for end in (Forked.kill, Forked.terminate, lambda forked: forked.stdin.write("exit\n"), closed):
        forked = server.start({}, tmp_path)
        assert forked.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            forked.wait(0)
        end(forked)
        assert forked.wait(SECONDS) == 0
        assert forked.poll() == 0
        forked.kill()  # of one that has ended: nothing, and nobody who has its id now
        until(partial(is_no_process, forked.pid))


def is_no_process(pid: int) -> bool:
    """Nor a zombie."""
    return started(pid) == ""


def closed(forked: Forked) -> None:
    """Nobody will ask any more."""
    forked.stdin.close()


def test_a_child_process_does_not_keep_it_alive(server: ForkServer, tmp_path: Path) -> None:
    forked = server.start({"PATH": os.environ["PATH"]}, tmp_path)
    stray = int(asked(forked, "__import__('subprocess').Popen(['sleep', '600']).pid"))
    forked.kill()
    try:
        assert forked.wait(SECONDS) == 0
    finally:
        kill({stray}, 9)


def test_processes_end_with_the_process_that_started_the_server(tmp_path: Path) -> None:
    code = f"""
import os, time
from pathlib import Path
from penstock.local.lambda_processes import ForkServer
here = Path({str(tmp_path)!r})
(here / "script.py").write_text({SCRIPT!r})
forked = ForkServer(here / "script.py", [], os.environ).start({{}}, here)
print(forked.pid, flush=True)
time.sleep(600)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env={**os.environ, TAG: str(tmp_path)}
    )
    assert process.stdout is not None
    assert int(process.stdout.readline()) in tagged(TAG, str(tmp_path))
    process.kill()
    process.wait()
    gone(tmp_path)


def test_starting_on_a_dead_server_fails(tmp_path: Path) -> None:
    server = made(tmp_path)
    server.start({}, tmp_path).kill()
    kill(tagged(TAG, str(tmp_path)), signal.SIGKILL)
    with pytest.raises(OSError):  # noqa: PT011  # whichever it is, it says so
        server.start({}, tmp_path)


def test_a_fork_server_that_ended_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from penstock.local import lambda_processes

    monkeypatch.setattr(lambda_processes, "_SERVERS", {})
    monkeypatch.setattr(lambda_processes, "_script", lambda: tmp_path / "script.py")
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, TAG: str(tmp_path)}
    lambda_processes._forked(tmp_path, [], environment).kill()
    kill(tagged(TAG, str(tmp_path)), signal.SIGKILL)
    with pytest.raises(OSError):  # noqa: PT011
        lambda_processes._forked(tmp_path, [], environment)
    assert asked(lambda_processes._forked(tmp_path, [], environment), "1 + 1") == "2"


def lines(log: Log) -> list[str]:
    return [log.lines.get_nowait() for _ in range(log.lines.qsize())]


def test_all_that_a_process_wrote_is_in_its_log_at_once() -> None:
    theirs, ours = os.pipe()
    log = Log(theirs)
    for number in range(1000):
        os.write(ours, f"line {number}\n".encode())
        log.read()
        assert lines(log) == [f"line {number}"]


def test_a_process_that_writes_much_does_not_wait_for_who_reads() -> None:
    theirs, ours = os.pipe()
    log = Log(theirs)
    with open(ours, "wb") as stderr:
        stderr.write(b"a line\n" * PIPE_BYTES + b"its last words, \xff")
    until(lambda: not log.read())
    assert lines(log) == ["a line"] * PIPE_BYTES + ["its last words, \ufffd"]


def test_a_log_waits_for_nobody_who_is_silent() -> None:
    theirs, ours = os.pipe()
    log = Log(theirs)
    assert log.read()
    assert lines(log) == []
    os.close(ours)
    until(lambda: not log.read())
