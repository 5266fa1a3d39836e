"""Logs on terminals: colours, a status line, and nothing that could harm the terminal."""

from io import StringIO

import pytest
from rich.console import Console

from penstock.cli.screen import LiveScreen, colours_only


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
