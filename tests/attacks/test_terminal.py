"""What an attacker put into names, reasons and logs so that the terminal of whoever looks obeys it."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from penstock.cli import formats
from penstock.cli.boards import JobTable, LiveBoard, PlainBoard, QuietBoard, labels
from penstock.cli.errors import CliError
from penstock.cli.follow import JsonScreen, LiveScreen, PlainScreen, Screen
from penstock.cli.joined import Watched
from penstock.cli.logview import View
from penstock.cli.output import Column, Output
from penstock.cli.terminal import BIDIRECTIONAL, UNSAFE, clean, colours_only
from penstock.cli.transfer import bytes_bar
from tests.functions.service import Service, refused
from tests.functions.stage import DIGEST, Stage

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
ATTACKS = {
    "the clipboard": CLIPBOARD,
    "the clipboard, in one byte": "\x9d52;c;cm0gLXJmIH4=\x9c",
    "a title": "\x1b]0;root@production\x1b\\",
    "an answer that is typed": "\x1b[6n\x1bP$q\"p\x1b\\",
    "the cursor": "\x1b[2J\x1b[1;1H",
    "another line": "\r\x1b[K",
    "a reset": "\x1bc",
    "one byte that begins a sequence": "\x9b31m",
    "letters in another order": "\u202egnp.exe",
    "isolates": "\u2066\u2067x\u2069",
    "a line of its own": "\u2028|=| settled: succeeded",
    "a bell": "\x07\x08\x7f",
}  # fmt: skip

attacks = pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())


class Terminal:
    """The two streams of a command at a terminal, or in pipes."""

    def __init__(self, *, is_terminal: bool) -> None:
        self.out = Output()
        self.file = StringIO()
        self.out.console = self.out.errors = Console(
            file=self.file, force_terminal=is_terminal, width=500, color_system=None, highlight=False, markup=False
        )

    def shown(self) -> str:
        return self.file.getvalue()


def is_safe(text: str) -> bool:
    """Nothing but lines and tabs, colours, and what `rich` itself writes to hide the cursor of a progress bar."""
    return not set(colours_only(text.replace("\n", ""))) - set(text) and not (set(text) - {"\n", "\t"}) & UNSAFE


@pytest.mark.parametrize("is_terminal", [True, False])
@attacks
def test_tables_details_notes_and_errors(attack: str, is_terminal: bool) -> None:
    at = Terminal(is_terminal=is_terminal)
    item = {"name": f"a{attack}b", "more": {attack: [attack]}}
    at.out.rows([item], [Column("NAME", "name"), Column("MORE", lambda one: one["name"]), Column("ALL", "more")])
    at.out.details([(attack, attack), ("reason", item)])
    at.out.line(attack)
    at.out.done(attack, {})
    at.out.note(attack)
    at.out.notice(attack)
    at.out.error(CliError(attack, attack))
    assert is_safe(at.shown()), repr(at.shown())
    assert "NAME" in at.shown()


@pytest.mark.parametrize(
    "view",
    [
        formats.Format("csv"),
        formats.Format("template", template="{name} {more}"),
        formats.Format("jsonl", query="[].name"),
        formats.Format(query="[0].name"),
    ],
    ids=lambda view: view.form,
)
@attacks
def test_formats_of_lists(attack: str, view: formats.Format) -> None:
    at = Terminal(is_terminal=True)
    at.out.view, at.out.as_json = view, bool(view.query)
    at.out.table([{"name": f"a{attack}b", "more": [attack]}], [Column("NAME", "name"), Column("MORE", "more")], "none")
    assert is_safe(at.shown()), repr(at.shown())
    assert "a" in at.shown()


@attacks
def test_errors_for_programs(attack: str) -> None:
    at = Terminal(is_terminal=True)
    at.out.as_json = True
    at.out.error(CliError(attack, attack, [attack]))
    assert is_safe(at.shown()), repr(at.shown())
    assert json.loads(at.shown())["detail"] == attack


@attacks
def test_lines_and_streams_of_a_log(attack: str) -> None:
    def show(screen: Screen) -> None:
        for stream in ("stdout", "stderr", "control", "worker", f"bg.{attack}.stdout"):
            screen.event({"stream": stream, "payload": f"a{attack}b", "task": None})
        screen.where("queued", attack)
        screen.notice(attack)

    at = Terminal(is_terminal=True)
    show(PlainScreen(at.out, View(verbose=True)))
    assert is_safe(at.shown()), repr(at.shown())
    live = Terminal(is_terminal=True)
    screen = LiveScreen(live.out.console, View(verbose=True))
    show(screen)
    assert is_safe(live.shown()), repr(live.shown())


@attacks
def test_logs_and_the_table_of_several_jobs(attack: str) -> None:
    found = {"state": "settled", "outcome": "failed", "reason": attack, "times": {}}
    view = View(verbose=True, timestamps=True)
    jobs = [Watched("id1", f"a{attack}b", view, found, why=attack), Watched("id2", attack, view, why=attack)]
    at = Terminal(is_terminal=True)
    for board in (LiveBoard(at.out.console, jobs), PlainBoard(at.out, jobs), QuietBoard(at.out)):
        for stream in ("stdout", "stderr", "control", f"bg.{attack}.stdout"):
            line = {"stream": stream, "payload": f"a{attack}b", "task": None, "time": "2026-01-01T10:00:00Z"}
            board.event(jobs[0], line)
        board.ended(jobs[0])
        board.notice(attack)
    at.out.console.print(JobTable(jobs, labels(jobs), {job.id: "cyan" for job in jobs}))
    assert is_safe(at.shown()), repr(at.shown())
    assert "failed" in at.shown()


def test_colours_of_a_log_end_with_their_line() -> None:
    assert colours_only("\x1b[8mhidden") == "\x1b[8mhidden\x1b[0m"
    assert colours_only("\x1b[31mred\x1b[0m") == "\x1b[31mred\x1b[0m"


@attacks
def test_json_is_untouched(attack: str) -> None:
    at = Terminal(is_terminal=False)
    at.out.json({"name": attack})
    assert json.loads(at.shown()) == {"name": attack}
    events = Terminal(is_terminal=False)
    JsonScreen(events.out).event({"stream": "stdout", "payload": attack})
    assert json.loads(events.shown())["payload"] == attack


def test_what_a_pipe_gets_is_what_the_job_printed() -> None:
    at = Terminal(is_terminal=False)
    PlainScreen(at.out).event({"stream": "stdout", "payload": CLIPBOARD})
    at.out.data(CLIPBOARD)
    assert at.shown() == f"{CLIPBOARD}\n{CLIPBOARD}\n"


@attacks
def test_the_bar_of_a_download(attack: str) -> None:
    at = Terminal(is_terminal=True)
    session: Any = type("Session", (), {"json": False, "out": at.out})
    with bytes_bar(session, f"[bold]{attack}", 10) as progress:
        progress(10)
    for bad in attack:
        assert bad not in UNSAFE - set("\x1b\r\x07") or bad not in at.shown()
    assert CLIPBOARD not in at.shown()


def test_every_character_that_reorders_is_known() -> None:
    assert {f"{ord(each):04X}" for each in BIDIRECTIONAL} == {
        "202A", "202B", "202C", "202D", "202E", "2066", "2067", "2068", "2069",
    }  # fmt: skip
    assert clean("a\u202eb\x9bc\td\ne", keep="\n") == "abcd\ne"
    assert clean("naïve, שלום, 日本") == "naïve, שלום, 日本"


SCRIPT = '#!/bin/sh\n#: name = "{name}"\n#: variety = "basic"\n#: output_rules = ["{rule}"]\n'
BAD = {"U+202E": "\u202e", "U+009B": "\x9b", "U+2066": "\u2066", "U+2028": "\u2028"}


@pytest.mark.parametrize(("code", "bad"), BAD.items())
def test_names_that_a_job_is_submitted_with(service: Service, code: str, bad: str) -> None:
    """By name and place, so that its user knows what to change."""
    asks: dict[str, Callable[[], dict[str, Any]]] = {
        "name": lambda: {"script": "#!/bin/sh\n", "name": f"a{bad}b"},
        "output_rules": lambda: {"script": "#!/bin/sh\n", "output_rules": [f"/work/a{bad}b"]},
        "the file's name": lambda: {"script": SCRIPT.format(name=f"a{bad}b", rule="/work/*")},
        "the file's rules": lambda: {"script": SCRIPT.format(name="a", rule=f"/work/a{bad}b")},
    }
    for what, ask in asks.items():
        told = service.ask("POST", "/v1/jobs", ask())
        assert told.status == 400, (what, told)
        assert code in told.body.decode(), (what, told)


@pytest.mark.parametrize(("code", "bad"), BAD.items())
def test_names_of_outputs(service: Service, code: str, bad: str) -> None:
    stage = Stage(service)
    file = {"path": f"/work/a{bad}b", "size": 1, "sha256": DIGEST}
    told = stage.agent(f"/v1/agent/jobs/{stage.job}/outputs", {"files": [file]})
    assert f"control character {code}" in refused(told, 400, "bad-request")["detail"]
