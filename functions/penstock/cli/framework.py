"""Commands and groups that take the global options before or after their name; groups are read from a table."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click

from penstock.cli.session import Session


class Entry(NamedTuple):
    """Where a command lives, as module:name, and its line of help; the module is loaded when it is needed."""

    where: str
    help: str


def _keep(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """Store a global option in the session; one that isn't given leaves what stood further left."""
    if value not in (None, False) and param.name:
        setattr(ctx.ensure_object(Session), param.name, value)


def global_options(*, shown: bool) -> list[click.Option]:
    """The options that every command takes. Below the top only --json shows in the help."""

    def option(name: str, help: str, **more: Any) -> click.Option:
        hidden = not shown and name != "--json"
        return click.Option([name], help=help, callback=_keep, expose_value=False, hidden=hidden, **more)

    return [
        option("--url", "The service's URL (or PENSTOCK_URL).", metavar="URL"),
        option("--token", "Your token (or PENSTOCK_TOKEN).", metavar="TOKEN"),
        option("--profile", "A profile of the configuration file (or PENSTOCK_PROFILE).", metavar="NAME"),
        option("--json", "Print the API's own objects as JSON.", is_flag=True),
        option("--no-color", "No colours (or NO_COLOR).", is_flag=True),
    ]


class Command(click.Command):
    """A command that takes the global options too."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params.extend(global_options(shown=False))


class Group(click.Group):
    """A group whose commands come from a table of entries."""

    command_class = Command

    def __init__(self, name: str, help: str, entries: Mapping[str, Entry] | None = None, **more: Any) -> None:
        self._entries = dict(entries or {})
        shown = more.pop("shown", False)
        super().__init__(name, help=help, subcommand_metavar="COMMAND", **more)
        self.params.extend(global_options(shown=shown))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._entries, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._entries.get(cmd_name)
        if entry is None:
            return self.commands.get(cmd_name)
        module, _, name = entry.where.partition(":")
        found = getattr(importlib.import_module(module), name)
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(f"there is no command `{args[0]}`{self._meant(ctx, args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, name: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(name, self.list_commands(ctx), 1)
        return f"; did you mean `{close[0]}`?" if close else ""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self._help_of(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _help_of(self, ctx: click.Context, name: str) -> str:
        if name in self._entries:
            return self._entries[name].help
        command = self.commands[name]
        return command.get_short_help_str(100)


def arguments(*names: str) -> Callable[[Any], Any]:
    """Several plain arguments at once."""

    def decorate(function: Any) -> Any:
        for name in reversed(names):
            function = click.argument(name.lower().replace("-", "_"), metavar=name)(function)
        return function

    return decorate
