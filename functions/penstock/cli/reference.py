"""Writes docs/users/cli.md from the commands' own help: `python -m penstock.cli.reference > docs/users/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from penstock.cli.app import cli
from penstock.cli.command import Group

WIDTH = 100
HEAD = """# The `penstock` command

Written by `python -m penstock.cli.reference` from the commands' own help; change it there.

Every command also takes the global options of `penstock` itself, before or after its name.
"""


def sections(command: click.Command, context: click.Context) -> Iterator[str]:
    """A section for a command and for each below it."""
    depth = "#" * min(4, 2 + context.command_path.count(" "))
    yield f"{depth} {context.command_path}\n\n```\n{command.get_help(context).rstrip()}\n```\n"
    if isinstance(command, Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below:
                yield from sections(below, click.Context(below, context, name, terminal_width=WIDTH))


def reference() -> str:
    """The whole page."""
    settings = {**cli.context_settings, "terminal_width": WIDTH}
    context = click.Context(cli, None, "penstock", **settings)
    return "\n".join([HEAD, *sections(cli, context)])


if __name__ == "__main__":
    click.echo(reference(), nl=False)
