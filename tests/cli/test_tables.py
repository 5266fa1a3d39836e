"""Tables on terminals: no line is wider, and no id is broken."""

import fcntl
import json
import os
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from rich.cells import cell_len

from penstock.cli import tables
from penstock.cli.app import cli
from penstock.cli.command import Group, Listing
from penstock.cli.tables import Column, Fit
from tests.cli.every import MARK
from tests.cli.service import TOKEN, serve
from tests.cli.wide import BEFORE, ULIDS, Wide

WIDTH = 80
ROOT = Path(__file__).parents[2]
GIVEN = {"POOL": "resource/bench", "JOB": ULIDS[0], "[JOB]": None, "[SERIES]": None}
"""What a list is of; None for what may be left out."""

PART_OF_AN_ID = re.compile(r"01KDV[0-9A-Z]*(?:…|\b)")
WHOLE_IDS = {*ULIDS}


def listings(group: click.Command = cli, *words: str) -> Iterator[list[str]]:
    """The words of every command that prints a list."""
    context = click.Context(group)
    for name in group.list_commands(context) if isinstance(group, Group) else ():
        command = group.get_command(context, name) if isinstance(group, Group) else None
        if isinstance(command, Listing):
            given = (GIVEN[str(each.metavar)] for each in command.params if isinstance(each, click.Argument))
            yield [*words, name, *(each for each in given if each)]
        elif command:
            yield from listings(command, *words, name)


def on_terminal(commands: list[list[str]], url: str, width: int = WIDTH) -> list[list[str]]:
    """The lines that each command prints on a terminal, without colours."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    known = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    more = {"PENSTOCK_URL": url, "PENSTOCK_TOKEN": TOKEN, "TERM": "xterm-256color"}
    run = [sys.executable, "-m", "tests.cli.every", json.dumps(commands)]
    paths = {"PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}"}
    with subprocess.Popen(run, stdin=theirs, stdout=theirs, stderr=theirs, env=known | more | paths, cwd=ROOT):
        os.close(theirs)
        said = b"".join(iter(lambda: _read(ours), b"")).decode()
    os.close(ours)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said).replace("\r\n", "\n")
    return [part.splitlines() for part in plain.split(f"{MARK}\n")[1:]]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody writes to it any more
        return b""


def test_every_list_fits_a_terminal_of_80_columns(home: Path) -> None:
    service = Wide()
    server = serve(service)
    Path(home / ".config/penstock").mkdir(parents=True)
    profile = f'[profile.a-name]\nurl = "https://{"very." * 20}example.com"\ntoken = "t"\n'
    (home / ".config/penstock/config.toml").write_text(profile)
    commands = list(listings())
    shown = on_terminal(commands, service.url)
    server.shutdown()
    server.server_close()
    assert len(shown) == len(commands) > 20
    for words, lines in zip(commands, shown, strict=True):
        assert len(lines) > 1, words
        assert not any(line.startswith("error") for line in lines), (words, lines)
        assert [line for line in lines if cell_len(line) > WIDTH] == [], words
        assert {*PART_OF_AN_ID.findall("\n".join(lines))} <= WHOLE_IDS, (words, lines)
        if lines[0].startswith("ID  "):
            before = BEFORE.get(f"{words[0]}s", "")
            assert [line.split(" ")[0] for line in lines[1:4]] == [before + id for id in ULIDS], (words, lines)


def test_every_command_that_is_called_list_is_one() -> None:
    known = {tuple(words[:2]) for words in listings()}
    context = click.Context(cli)
    for name in cli.list_commands(context):
        group = cli.get_command(context, name)
        assert not isinstance(group, Group) or "list" not in group.list_commands(context) or (name, "list") in known


def cells(*rows: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(rows)


ID, NAME, TAGS, STATE = Column("ID", "id"), Column("NAME", "name"), Column("TAGS", "tags"), Column("STATE", "state")
ROW = (ULIDS[0], "n" * 30, "t" * 20, "acquiring")


@pytest.mark.parametrize(
    ("room", "widths"),
    [
        (91, {0: 26, 1: 30, 2: 20, 3: 9}),
        (90, {0: 26, 1: 29, 2: 20, 3: 9}),
        (80, {0: 26, 1: 19, 2: 20, 3: 9}),
        (57, {0: 26, 1: 8, 2: 8, 3: 9}),
        (56, {0: 26, 1: 17, 3: 9}),
        (46, {0: 26, 3: 9}),
        (37, {0: 26, 3: 9}),
        (36, {0: 26}),
        (10, {0: 26}),
    ],
)
def test_texts_give_way_before_states_and_states_before_ids(room: int, widths: dict[int, int]) -> None:
    assert tables.layout((ID, NAME, TAGS, STATE), [ROW], room) == widths


def test_columns_without_values_go_first() -> None:
    rows = cells((ULIDS[0], "-", "t" * 60), (ULIDS[1], "-", "t" * 2))
    assert tables.layout((ID, NAME, TAGS), rows, 80) == {0: 26, 2: 52}
    assert tables.layout((ID, NAME, TAGS), [(ULIDS[0], "-", "t" * 4)], 80) == {0: 26, 1: 4, 2: 4}


def test_a_column_that_has_ids_is_one_of_ids() -> None:
    assert tables.layout((NAME, TAGS), [(f"w-{ULIDS[0]}", "t")], 10) == {0: 28}
    assert tables.layout((NAME, TAGS), [("x", f"{ULIDS[0]}.{ULIDS[1]}")], 10) == {0: 4, 1: 53}
    assert tables.layout((NAME, Column("A", "a", fit=Fit.ID)), [("x" * 9, "y" * 9)], 12) == {0: 8, 1: 9}


def test_wide_letters_count_twice() -> None:
    (_, line) = tables.draw((NAME, STATE), [("漢字" * 10, "running")], {0: 11, 1: 7}, {})
    assert line.plain == "漢字漢字漢…  running"
    assert tables.layout((NAME, STATE), [("漢字" * 10, "running")], 20) == {0: 11, 1: 7}


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (50, f"token {ULIDS[0]} of alice"),
        (41, f"token {ULIDS[0]} of alice"),
        (40, f"token {ULIDS[0]} of ali…"),
        (34, f"token {ULIDS[0]} …"),
        (33, f"token {ULIDS[0]}…"),
        (32, "token …"),
        (20, "token …"),
        (7, "token …"),
        (6, "token…"),
    ],
)
def test_a_text_is_not_cut_within_an_id(width: int, shown: str) -> None:
    (_, line) = tables.draw((NAME, STATE), [(f"token {ULIDS[0]} of alice", "x")], {0: width, 1: 5}, {})
    assert line.plain == shown.ljust(width) + "  x"
