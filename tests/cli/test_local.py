"""penstock local, when nothing is up. That it comes up is tested with the local cloud itself."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.cli import terminal
from penstock.cli.commands import local
from penstock.cli.config import Profile, load, path, save_profile, use_profile
from penstock.console import build
from penstock.local import cloud, giveback
from penstock.local.state import LocalCloudError, Running
from tests.cli.conftest import plain


@pytest.fixture(autouse=True)
def state(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where no local cloud is, with a console that is built."""
    monkeypatch.setenv("PENSTOCK_STATE", str(home / "state"))
    monkeypatch.setattr(build, "built", lambda report: home / "console")
    return home / "state"


def test_status() -> None:
    assert plain("local", "status").stdout == "not running\n"
    assert json.loads(plain("local", "status", "--json").stdout) == {"running": False}


def test_down_forgets_the_profile(home: Path) -> None:
    file = path({"HOME": str(home)})
    save_profile(file, "local", Profile("http://127.0.0.1:9", "t"))
    assert plain("local", "down").exit_code == 0
    assert load(file).profiles == {}


def test_reset_needs_one() -> None:
    result = plain("local", "reset")
    assert (result.exit_code, "penstock local up" in result.stderr) == (4, True)


def test_up_needs_its_configuration() -> None:
    result = plain("local", "up", "--config", "missing.toml")
    assert (result.exit_code, "missing.toml" in result.stderr) == (2, True)


def test_up_and_reset_serve_the_console_and_say_where(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Path | None] = []

    def up(console: Path | None, **_: object) -> Running:
        served.append(console)
        return Running("http://127.0.0.1:9", "t", 7, "/h", console="http://127.0.0.1:9/" if console else "")

    monkeypatch.setattr(cloud, "up", up)
    monkeypatch.setattr(cloud, "reset", lambda report, console: up(console))
    monkeypatch.setattr(cloud, "status", lambda: RUNNING)
    for words in (("up", "--detach"), ("reset",)):
        result = plain("local", *words)
        assert "console  http://127.0.0.1:9/\n" in result.stdout
        assert json.loads(plain("local", *words, "--json").stdout)["console"] == "http://127.0.0.1:9/"
    assert served == [home / "console"] * 4


def test_a_console_that_cannot_be_built_keeps_no_cloud_down(
    monkeypatch: pytest.MonkeyPatch, runs: list[Running | None]
) -> None:
    def fail(report: object) -> Path:
        raise build.ConsoleError("the console cannot be built: npm has no network")

    monkeypatch.setattr(build, "built", fail)
    result = plain("local", "up", "--detach")
    assert (result.exit_code, "console  " in result.stdout) == (0, False)
    assert "there is no console: the console cannot be built: npm has no network" in result.stderr
    assert json.loads(plain("local", "up", "--detach", "--json").stdout)["console"] is None


RUNNING = Running(url="http://127.0.0.1:9", token="t", pid=7, home="/h")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Running | None]:
    """A local cloud that another command started; and how often it is still there."""
    looks: list[Running | None] = [RUNNING]
    monkeypatch.setattr(cloud, "up", lambda **_: RUNNING)
    monkeypatch.setattr(cloud, "status", lambda: looks.pop(0) if len(looks) > 1 else looks[0])
    return looks


def downs(monkeypatch: pytest.MonkeyPatch, left: list[str]) -> list[dict[str, bool]]:
    """How it is taken down."""
    given: list[dict[str, bool]] = []

    def down(report: Callable[[str], None], **more: bool) -> list[str]:
        given.append(more)
        return left

    monkeypatch.setattr(cloud, "down", down)
    monkeypatch.setattr(giveback, "contents", lambda call, running: ["3 jobs"])
    return given


def interrupted(_: float) -> None:
    raise KeyboardInterrupt


def test_a_second_up_leaves_the_cloud_running(
    runs: list[Running | None], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = downs(monkeypatch, [])
    monkeypatch.setattr(local.time, "sleep", interrupted)
    file = path({"HOME": str(home)})
    save_profile(file, "work", Profile("https://w.example"))
    use_profile(file, "work")
    result = plain("local", "up", "--port", "8000")
    assert result.exit_code == 0
    assert "--port, --workers and --config change nothing" in result.stderr
    assert "it still runs" in result.stderr
    assert given == []
    assert load(file).default == "local"


def test_a_second_up_ends_when_the_cloud_does(runs: list[Running | None], monkeypatch: pytest.MonkeyPatch) -> None:
    runs[:] = [None]
    monkeypatch.setenv("PENSTOCK_URL", "http://127.0.0.1:1")
    result = plain("local", "up")
    assert (result.exit_code, "it was ended" in result.stderr) == (0, True)
    assert "change nothing" not in result.stderr
    assert "PENSTOCK_URL is set, and goes before the profile" in result.stderr


def test_who_started_it_ends_it_with_ctrl_c(
    runs: list[Running | None], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = downs(monkeypatch, ["worker w1 of here: dirty"])
    monkeypatch.setattr(cloud, "owns", lambda running: running is RUNNING)
    monkeypatch.setattr(local.time, "sleep", interrupted)
    file = path({"HOME": str(home)})
    save_profile(file, "work", Profile("https://w.example"))
    use_profile(file, "work")
    result = plain("local", "up")
    assert (result.exit_code, given) == (0, [{"give_back": True, "keep": False}])
    assert "worker w1 of here: dirty" in result.stderr
    assert load(file).default == "work"  # as before


def test_down_says_what_goes_and_asks_on_a_terminal(
    runs: list[Running | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = downs(monkeypatch, [])
    assert plain("local", "down").exit_code == 0
    assert len(given) == 1
    monkeypatch.setattr(terminal, "can_ask", lambda: True)
    result = plain("local", "down", input="n\n")
    assert (result.exit_code, len(given)) == (130, 1)
    assert "deletes all that is in it:\n  3 jobs\n" in result.stderr
    assert plain("local", "down", input="y\n").exit_code == 0
    assert plain("local", "down", "--yes").exit_code == 0
    assert len(given) == 3


def test_down_may_keep_what_there_is_and_then_does_not_ask(
    runs: list[Running | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = downs(monkeypatch, [])
    monkeypatch.setattr(terminal, "can_ask", lambda: True)
    result = plain("local", "down", "--keep")
    assert (result.exit_code, given) == (0, [{"give_back": True, "keep": True}])
    assert "deletes" not in result.stderr


def test_what_was_kept_is_not_deleted_without_a_word(
    runs: list[Running | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = downs(monkeypatch, [])
    runs[0] = None
    monkeypatch.setattr(cloud, "keeps", lambda: True)
    monkeypatch.setattr(terminal, "can_ask", lambda: True)
    result = plain("local", "down", input="n\n")
    assert (result.exit_code, given) == (130, [])
    assert "deletes what an earlier one has kept" in result.stderr
    assert plain("local", "down", input="y\n").exit_code == 0


def test_down_ends_also_what_does_not_answer(runs: list[Running | None], monkeypatch: pytest.MonkeyPatch) -> None:
    given = downs(monkeypatch, [])

    def contents(*_: object) -> list[str]:
        raise LocalCloudError("no")

    monkeypatch.setattr(giveback, "contents", contents)
    result = plain("local", "down")
    assert (result.exit_code, len(given), "does not answer" in result.stderr) == (0, 1, True)
