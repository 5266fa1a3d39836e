"""Commands and groups that take the global options anywhere, the session they share, and types of option values."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from penstock.cli import formats, references
from penstock.cli.formats import Format
from penstock.cli.output import Output

if TYPE_CHECKING:
    from penstock.cli.client import Api
    from penstock.cli.config import Target


@dataclass
class Session:
    """The global options, wherever on the line they stood, and what follows from them."""

    url: str | None = None
    token: str | None = None
    profile: str | None = None
    json: bool = False
    no_color: bool = False
    query: str = ""
    form: str = "table"
    template: str = ""
    columns: tuple[str, ...] = ()
    sort: str = ""

    @cached_property
    def out(self) -> Output:
        """Where results and notices go."""
        view = Format(self.form, self.template, self.columns, self.sort, self.query)
        return Output(as_json=self.json, color=not (self.no_color or os.environ.get("NO_COLOR")), view=view)

    @property
    def config_path(self) -> Path:
        """The configuration file."""
        from penstock.cli import config

        return config.path(os.environ)

    @cached_property
    def target(self) -> Target:
        """The service that the options, the environment and the configuration name. Raises Refused."""
        from penstock.cli import config

        loaded = config.load(self.config_path)
        return config.resolve(loaded, os.environ, url=self.url, token=self.token, profile=self.profile)

    @cached_property
    def api(self) -> Api:
        """The service's API. httpx is loaded here, so that commands that stay at home start at once."""
        from penstock.cli.client import Api, Transport

        return Api(Transport(self.target.url, self.target.token, self.out.notice))


pass_session = click.make_pass_decorator(Session, ensure=True)


class Entry(NamedTuple):
    """Where a command lives, as module:name, and its line of help; the module is loaded when it is needed."""

    where: str
    help: str


def _keep(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """Store a global option in the session. If absent, a value from further left on the line stays."""
    if value not in (None, False) and param.name:
        setattr(ctx.ensure_object(Session), param.name, value)


def _keep_query(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Store a query, whose result is JSON. Raises Refused unless it can be one."""
    if value is not None:
        formats.query(value)
        session = ctx.ensure_object(Session)
        session.query, session.json = value, True


def _keep_form(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Store the format of a list. Raises Refused for an unknown one."""
    if value is not None:
        session = ctx.ensure_object(Session)
        session.form, session.template = formats.form(value)
        session.json = session.json or session.form in JSON_FORMS


def _keep_columns(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Store the columns of a list, in the order of their names."""
    if value is not None:
        names = [name.strip() for name in value.split(",")]
        ctx.ensure_object(Session).columns = tuple(name for name in names if name)


JSON_FORMS = ("json", "jsonl")


def global_options(*, shown: bool, listing: bool = False) -> list[click.Option]:
    """The options that every command takes. Below the top only --json shows in the help, and --query of lists."""

    def option(name: str, help: str, callback: Any = _keep, **more: Any) -> click.Option:
        hidden = not shown and name != "--json" and not (listing and name == "--query")
        return click.Option([name], help=help, callback=callback, expose_value=False, hidden=hidden, **more)

    return [
        option("--url", "URL of the service (or PENSTOCK_URL).", metavar="URL"),
        option("--token", "Your token (or PENSTOCK_TOKEN).", metavar="TOKEN"),
        option("--profile", "Profile in the configuration file (or PENSTOCK_PROFILE).", metavar="NAME"),
        option("--json", "Print JSON as the HTTP API returns it.", is_flag=True),
        option(
            "--query", "Print what this JMESPath expression selects of the JSON.", callback=_keep_query, metavar="EXPR"
        ),
        option("--no-color", "Print no colours (or NO_COLOR).", is_flag=True),
    ]


class Command(click.Command):
    """A command that takes the global options too."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params.extend(global_options(shown=False, listing=isinstance(self, Listing)))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, with whole ids where the user gave less of one. By now all options are known."""
        for param in self.params:
            if isinstance(param.type, references.Reference) and ctx.params.get(param.name or ""):
                ctx.params[str(param.name)] = self._resolved(ctx, param, param.type)
        return super().invoke(ctx)

    @staticmethod
    def _resolved(ctx: click.Context, param: click.Parameter, type: references.Reference) -> Any:
        session, given = ctx.ensure_object(Session), ctx.params[str(param.name)]
        many = param.multiple or param.nargs == -1
        return tuple(type.resolve(session, each) for each in given) if many else type.resolve(session, given)


class Listing(Command):
    """A command that prints a list: the user chooses its columns, its order and its format."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.params.extend(listing_options())

    def invoke(self, ctx: click.Context) -> Any:
        """Print the list. Raises UsageError for options that do not go together."""
        session = ctx.ensure_object(Session)
        if session.json and session.form not in ("table", *JSON_FORMS):
            other = "--query" if session.query else "--json"
            raise click.UsageError(f"{other} prints JSON, and does not go with --format {session.form}", ctx)
        if session.columns and (session.json or session.form == "template"):
            instead = "a template names its fields itself" if session.template else "for JSON, --query chooses keys"
            raise click.UsageError(f"--columns is for tables and csv; {instead}", ctx)
        return super().invoke(ctx)


def listing_options() -> list[click.Option]:
    """The options of a command that prints a list."""

    def option(name: str, metavar: str, help: str, callback: Any) -> click.Option:
        return click.Option([name], metavar=metavar, help=help, callback=callback, expose_value=False)

    forms = "table, json (as --json), jsonl, csv or template='{id} {state}'."
    return [
        option("--columns", "A,B", "Columns to show: titles, or keys such as times.started.", _keep_columns),
        option("--sort", "COLUMN", "Sort what is listed by this column; -COLUMN for the reverse.", _keep),
        option("--format", "FORMAT", f"Format: {forms}", _keep_form),
    ]


class Group(click.Group):
    """A group whose commands come from a table of entries."""

    command_class = Command

    def __init__(self, name: str, help: str, entries: Mapping[str, Entry] | None = None, **more: Any) -> None:
        self._entries = dict(entries or {})
        shown = more.pop("shown", False)
        super().__init__(name, help=help, subcommand_metavar="COMMAND", **more)
        self.params.extend(global_options(shown=shown))

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.commands, *self._entries]

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


def arguments(*names: str, **types: references.Reference) -> Callable[[Any], Any]:
    """Several plain arguments at once. Those that are called as a kind of thing take what names one."""

    def decorate(function: Any) -> Any:
        for name in reversed(names):
            type = types.get(name) or references.BY_NAME.get(name)
            function = click.argument(name.lower().replace("-", "_"), metavar=name, type=type)(function)
        return function

    return decorate


def duration(text: str) -> int:
    """A duration in seconds, written as 90s, 30m, 1h30m, 7d, or a number of seconds. Raises BadParameter."""
    from penstock.toml.checks import parse_duration

    seconds = parse_duration(int(text) if text.isascii() and text.isdigit() else text)
    if isinstance(seconds, str):
        raise click.BadParameter(f"`{text}`: {seconds}")
    return seconds


def since(text: str) -> str:
    """A time, as RFC 3339: written so, or as how long ago that is, such as 2d. Raises BadParameter."""
    from penstock.cli import times

    try:
        found = times.parse(text) if "-" in text else times.now() - timedelta(seconds=duration(text))
    except (ValueError, OverflowError):
        raise click.BadParameter(f"`{text}` is no time: write 2d for two days ago, or 2026-01-31T10:00:00Z") from None
    return found.isoformat(timespec="milliseconds")


def pair(text: str) -> tuple[str, str]:
    """NAME=VALUE. Raises BadParameter."""
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.BadParameter(f"`{text}` is not NAME=VALUE")
    return name, value


def mapping(pairs: Sequence[tuple[str, str]], option: str) -> dict[str, str]:
    """Pairs as a dictionary. Raises UsageError when a name has two values."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if found.setdefault(name, value) != value:
            raise click.UsageError(f"{option}: `{name}` is given twice, as `{found[name]}` and as `{value}`")
    return found


def depend(text: str) -> dict[str, object]:
    """JOB[,on=failure][,copy_outputs=false] as a dependency of the API."""
    job, *settings = text.split(",")
    given: dict[str, object] = dict(pair(setting) for setting in settings)
    if "copy_outputs" in given:
        given["copy_outputs"] = {"true": True, "false": False}.get(str(given["copy_outputs"]), given["copy_outputs"])
    return {"job": job, **given}
