"""Every command that a page gives is one that `penstock` has, with options and arguments that it takes."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from penstock.cli.app import cli
from tests.docs.shell import Command, commands

GIVEN = commands()


def parse(words: tuple[str, ...]) -> None:
    """Read a command line as `penstock` does, without running it. Raises what it would show to its user."""
    context = click.Context(cli, info_name="penstock")
    command: click.Command = cli
    rest = list(words)
    while isinstance(command, click.Group):
        context = command.make_context(command.name, rest, parent=context if command is not cli else None)
        rest = [*context._protected_args, *context.args]
        _, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
    command.make_context(command.name, rest, parent=context)


def with_files(words: tuple[str, ...]) -> None:
    """Make what looks like a file or a folder in the present folder: a command may require that it exists."""
    for word in words:
        name = word.rpartition("=")[2]
        if "." in name and not name.startswith(("/", "-", "http", "..")):
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        elif name.endswith("/") and not name.startswith("/"):
            Path(name).mkdir(parents=True, exist_ok=True)


@pytest.mark.parametrize("command", GIVEN, ids=lambda each: f"{each.page}:{each.line}")
def test_the_command_line_is_right(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with_files(command.words)
    parse(command.words)


def test_many_are_read() -> None:
    assert len(GIVEN) > 80
    assert len({each.page for each in GIVEN}) > 12


@pytest.mark.parametrize("words", [("job", "shwo", "X"), ("job", "show"), ("job", "show", "X", "--fast"), ("nothing",)])
def test_a_wrong_command_line_is_noticed(words: tuple[str, ...]) -> None:
    with pytest.raises(click.ClickException):
        parse(words)
