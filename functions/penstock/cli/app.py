"""The tree of commands, and how a run ends: messages and exit codes."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from io import TextIOWrapper
from typing import Any, NoReturn

import click

from penstock.cli.errors import Broken, CliError, Interrupted, Refused
from penstock.cli.framework import Entry, Group
from penstock.cli.output import Output

COMMANDS = "penstock.cli.commands"
ENTRIES = {
    "local": Entry(f"{COMMANDS}.local:group", "The same service on this machine: up, down, status, reset."),
    "job": Entry(f"{COMMANDS}.job:group", "Submit jobs, follow them, and fetch what they made."),
    "artifact": Entry(f"{COMMANDS}.artifact:group", "Files that are kept: who owns them, why, and until when."),
    "published": Entry(f"{COMMANDS}.published:group", "Files that were published: names for good, and who reads them."),
    "cache": Entry(f"{COMMANDS}.cache:group", "What jobs left for later jobs: keys, scopes, and until when."),
    "pool": Entry(f"{COMMANDS}.pool:group", "Capacity: who holds it, who waits for it."),
    "worker": Entry(f"{COMMANDS}.unit:worker", "The machines that run jobs."),
    "resource": Entry(f"{COMMANDS}.unit:resource", "What wells made for jobs."),
    "target": Entry(f"{COMMANDS}.site:target", "The execution environments of this site."),
    "factory": Entry(f"{COMMANDS}.site:factory", "What makes workers."),
    "well": Entry(f"{COMMANDS}.site:well", "What makes resources."),
    "resource-type": Entry(f"{COMMANDS}.site:resource_type", "The kinds of resources that jobs may ask for."),
    "canary": Entry(f"{COMMANDS}.canary:group", "Jobs of the site's own that show whether things work."),
    "github": Entry(f"{COMMANDS}.github:group", "Jobs that come from GitHub."),
    "driver": Entry(f"{COMMANDS}.driver:group", "Drivers: which there are, and whether one keeps its promises."),
    "config": Entry(f"{COMMANDS}.site:config", "The site's configuration: check, apply, show."),
    "user": Entry(f"{COMMANDS}.user:group", "Users, their privileges and tokens."),
    "audit": Entry(f"{COMMANDS}.audit:group", "What operators did."),
    "whoami": Entry(f"{COMMANDS}.user:whoami", "Show who you are to the service."),
    "agent": Entry(f"{COMMANDS}.agent:agent", "Serve as a machine that exists already, job after job."),
    "profile": Entry(f"{COMMANDS}.profile:group", "The services that this command knows."),
    "openapi": Entry(f"{COMMANDS}.misc:openapi", "Print the service's OpenAPI document."),
    "completion": Entry(f"{COMMANDS}.misc:completion", "Print a shell's completion script."),
}
EXITS = """\b
Exit codes:
  0  good                    3  the job was cancelled
  1  the job failed          4  the job errored, or the service did
  2  wrong usage or refused  5  the service can't be reached
"""
EPIPE_CODE = 141
"""What shells give for a command whose reader went away."""


class Root(Group):
    """The top of the tree. Whatever happens below it ends here: no exception gets out."""

    def main(self, *args: Any, **more: Any) -> NoReturn:
        more["standalone_mode"] = False
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # logs hold anything, and not every terminal shows everything
                stream.reconfigure(errors="replace")
        more.setdefault("prog_name", "penstock")
        sys.exit(run(lambda: super(Root, self).main(*args, **more)))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would make it 1, which means that the job failed
            raise click.exceptions.Exit(EPIPE_CODE) from None


def run(call: Any) -> int:
    """Call the command; its exit code, after saying what went wrong."""
    try:
        code = call()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        # Python would complain again when it closes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EPIPE_CODE
    except click.exceptions.NoArgsIsHelpError as help:
        click.echo(help.format_message(), err=True)
        return Refused.exit_code
    except Exception as error:
        problem = _explain(error)
        Output(color=_wants_color()).error(problem)
        return problem.exit_code


def _explain(error: Exception) -> CliError:
    if isinstance(error, CliError):
        return error
    if isinstance(error, click.Abort):
        return Interrupted("interrupted")
    if isinstance(error, click.UsageError):
        help = f"`{error.ctx.command_path} --help` shows the usage" if error.ctx else None
        return Refused(_sentence(error.format_message()), help)
    if isinstance(error, click.ClickException):
        return Refused(_sentence(error.format_message()))
    if os.environ.get("PENSTOCK_DEBUG"):
        raise error
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Broken(f"penstock failed: {said}", "this is a bug; PENSTOCK_DEBUG=1 shows where")


def _sentence(text: str) -> str:
    text = text.strip().removesuffix(".")
    return text[:1].lower() + text[1:]


def _wants_color() -> bool:
    return not ("--no-color" in sys.argv or os.environ.get("NO_COLOR"))


def _version() -> str:
    try:
        return metadata.version("penstock")
    except metadata.PackageNotFoundError:
        return "(not installed)"


cli = Root(
    "penstock",
    "Run jobs on machines and with resources that are scarce.",
    ENTRIES,
    shown=True,
    epilog=EXITS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=True,
)
click.version_option(_version(), prog_name="penstock", message="%(prog)s %(version)s")(cli)
