"""Logs on terminals: colours, a status line, and nothing that could harm the terminal."""

from io import StringIO

import pytest
from rich.console import Console

from penstock.cli.follow import LiveScreen, PlainScreen
from penstock.cli.logview import View
from penstock.cli.output import Output
from penstock.cli.terminal import colours_only

SERVICE_LINES = (
    ("detail", "got slot a-1"),
    ("control", "running on w1 (target lab)"),
    ("control", "settled: succeeded: it took 3 s"),
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext", "plain\ttext"),
        ("\x1b[1;31mred\x1b[0m", "\x1b[1;31mred\x1b[0m"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07x\x1b]8;;http://a\x1b\\y", "xy"),
        ("\x1bcreset\x1b", "creset"),
        ("\x9b2Jbell\x07\x00", "2Jbell"),
        ("\x1b\x01[2J", "[2J"),
    ],
)
def test_only_colours_reach_the_terminal(text: str, shown: str) -> None:
    assert colours_only(text) == shown


def test_live() -> None:
    file = StringIO()
    with LiveScreen(Console(file=file, force_terminal=True, width=80, color_system="standard")) as screen:
        screen.where("queued", "the job waits for " + "bench " * 50)
        screen.event({"stream": "stdout", "payload": "[red]x " + "long " * 40})
        screen.event({"stream": "stderr", "payload": "\x1b[31mwarning\x1b[0m"})
        screen.event({"stream": "control", "payload": "attempt 1 begins"})
        screen.notice("lost the connection")
    shown = file.getvalue()
    assert "[red]x " + ("long " * 40).rstrip() in shown
    assert "queued" in shown
    assert "|=| " in shown
    assert "\x1b[31mwarning" in shown


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, [1, 2]),
        ({"summary_follows": True}, [1]),
        ({"verbose": True}, [0, 1, 2]),
        ({"verbose": True, "summary_follows": True}, [0, 1, 2]),
    ],
)
def test_which_service_lines_are_shown(
    options: dict[str, bool], shown: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    live = StringIO()
    view = View(**options)
    plain = PlainScreen(Output(), view)
    with LiveScreen(Console(file=live, force_terminal=True, width=80), view) as screen:
        for stream, payload in SERVICE_LINES:
            plain.event({"stream": stream, "payload": payload})
            screen.event({"stream": stream, "payload": payload})
    expected = [SERVICE_LINES[number][1] for number in shown]
    assert capsys.readouterr().err.splitlines() == [f"|=| {text}" for text in expected]
    assert [text for _, text in SERVICE_LINES if text in live.getvalue()] == expected


def test_the_reason_of_a_wait_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    screen = PlainScreen(Output())
    screen.event({"stream": "control", "payload": "the job waits for bench"})
    for state, why in (("queued", "the job waits for bench"), ("queued", "position 1"), ("queued", "position 1")):
        screen.where(state, why)
    screen.where("acquiring", "a machine boots")
    assert capsys.readouterr().err.splitlines() == ["|=| the job waits for bench", "|=| queued: position 1"]


def test_verbose_shows_what_an_acquiring_job_waits_for(capsys: pytest.CaptureFixture[str]) -> None:
    PlainScreen(Output(), View(verbose=True)).where("acquiring", "a machine boots")
    assert capsys.readouterr().err == "|=| acquiring: a machine boots\n"
