"""Every command that a page gives is one that `penstock` has, with options and arguments that it takes. Scripts are
bash, job files have no mistakes, and what is run besides exists. tests/e2e/test_examples.py types the commands.
"""

from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock.cli.app import cli
from tests.docs.shell import ROOT, Command, blocks, commands, lines, pages

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


def ran(pattern: str) -> list[tuple[str, str]]:
    """What lines of shell examples run besides `penstock`, by page: the groups of a pattern."""
    return [(each.page, found[1]) for each in lines() if (found := re.search(pattern, each.text))]


def test_what_is_made_is_a_target_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    given = ran(r"(?:^|&& )make (\w+)")
    assert len(given) > 4
    assert [each for each in given if each[1] not in targets] == []


def test_the_tests_and_programs_that_are_run_exist() -> None:
    given = [(page, word) for page, rest in ran(r"(?:^|/)pytest (.*)") for word in rest.split() if "/" in word]
    given += ran(r"python (\S+\.py)\b")
    assert len(given) > 12
    assert [each for each in given if not (ROOT / each[1]).exists()] == []


def test_the_modules_that_are_run_exist() -> None:
    given = ran(r"python -m ([\w.]+)")
    assert len(given) > 10
    assert [each for each in given if not is_run_by_name(each[1])] == []


def is_run_by_name(name: str) -> bool:
    """Whether `python -m` runs a module: a package needs a `__main__`."""
    spec = find_spec(name)
    is_package = spec is not None and spec.submodule_search_locations is not None
    return find_spec(f"{name}.__main__") is not None if is_package else spec is not None


SCRIPTS = [(page.relative_to(ROOT).as_posix(), text) for page in pages() for text in blocks(page, "bash", "sh")]


@pytest.mark.parametrize(("page", "text"), SCRIPTS)
def test_scripts_are_what_bash_understands(page: str, text: str) -> None:
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), page


@pytest.mark.parametrize(("page", "text"), [each for each in SCRIPTS if each[1].startswith("#!")])
def test_job_files_have_no_mistakes(page: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(text)
    done = CliRunner().invoke(cli, ["job", "lint", str(tmp_path / "job.sh")])
    assert done.exit_code == 0, f"{page}: {done.output}"
