"""The tree of commands, and how a run ends: messages and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import metadata
from io import TextIOWrapper
from typing import Any, NoReturn

import click

from penstock.cli.command import Entry, Group, Session
from penstock.cli.errors import Broken, CliError, Interrupted, Refused
from penstock.cli.output import Output

COMMANDS = "penstock.cli.commands"


ENTRIES = {
    "local": Entry(f"{COMMANDS}.local:group", "Run the whole service on this machine: up, down, status, reset."),
    "job": Entry(f"{COMMANDS}.job:group", "Submit jobs, follow their logs, download their outputs."),
    "lease": Entry(f"{COMMANDS}.lease:group", "Have resources without a job: acquire, renew and release them."),
    "artifact": Entry(f"{COMMANDS}.artifact:group", "Show, keep and download stored files: outputs, inputs, logs."),
    "published": Entry(f"{COMMANDS}.published:group", "Find and download published files; set who may read them."),
    "cache": Entry(f"{COMMANDS}.artifact:cache", "Show and delete cache entries that jobs saved for later jobs."),
    "pool": Entry(f"{COMMANDS}.pool:group", "Show and change capacity: slots, holders, queues, limits."),
    "cost": Entry(f"{COMMANDS}.cost:costs", "Show what jobs cost, by owner, target, pool or day."),
    "share": Entry(f"{COMMANDS}.share:group", "Show whose jobs are served first, where owners have shares."),
    "target": Entry(f"{COMMANDS}.site:target", "Show the execution environments that jobs can name."),
    "resource-type": Entry(f"{COMMANDS}.site:resource_type", "Show the types of resources that jobs can request."),
    "login": Entry(f"{COMMANDS}.login:group", "Sign in to a service; let another machine sign in as you."),
    "logout": Entry(f"{COMMANDS}.login:logout", "Sign out: revoke the token of the profile, and remove it."),
    "console": Entry(f"{COMMANDS}.console:console", "Open the console in a browser, signed in."),
    "whoami": Entry(f"{COMMANDS}.user:whoami", "Show your user name and privileges."),
    "profile": Entry(f"{COMMANDS}.profile:group", "List, choose and remove the services in your configuration file."),
    "config": Entry(
        f"{COMMANDS}.site_config:config", "Check, compare, apply and show the site's configuration (operators only)."
    ),
    "site": Entry(f"{COMMANDS}.stop:site", "Pause and resume the whole site; show what is paused."),
    "worker": Entry(f"{COMMANDS}.unit:worker", "Show and control the machines that run jobs (operators only)."),
    "resource": Entry(f"{COMMANDS}.unit:resource", "Show and control the resources that jobs use (operators only)."),
    "factory": Entry(f"{COMMANDS}.site:factory", "Show, test and stop the factories, which make workers."),
    "well": Entry(f"{COMMANDS}.site:well", "Show and stop the wells, which make resources."),
    "canary": Entry(f"{COMMANDS}.site:canary", "Show and send canaries, which are regular test jobs (operators only)."),
    "account": Entry(f"{COMMANDS}.account:group", "Show what was left behind outside (operators only)."),
    "alarm": Entry(
        f"{COMMANDS}.alarm:group", "Show the alarms of the deployment, and its dead letters (operators only)."
    ),
    "user": Entry(f"{COMMANDS}.user:group", "Manage users and their privileges (operators only)."),
    "privilege": Entry(f"{COMMANDS}.privilege:group", "Ask for privileges; see who asks, and grant or refuse."),
    "token": Entry(f"{COMMANDS}.token:group", "Make, list and revoke tokens."),
    "audit": Entry(f"{COMMANDS}.user:audit", "Show what operators did (operators only)."),
    "github": Entry(f"{COMMANDS}.github:group", "Show the commits and deliveries from GitHub (operators only)."),
    "driver": Entry(f"{COMMANDS}.driver:group", "List drivers; test one against the driver contract."),
    "deploy": Entry(f"{COMMANDS}.deploy:deploy", "Deploy Penstock to your AWS account, or show what would change."),
    "agent": Entry(f"{COMMANDS}.local:agent", "Run jobs on this machine, as one of the site's hosts."),
    "openapi": Entry(f"{COMMANDS}.profile:openapi", "Print the service's OpenAPI document."),
    "completion": Entry(f"{COMMANDS}.profile:completion", "Print the completion script for a shell."),
}


EXITS = """\b
Exit codes:
  0  success                 3  the job was cancelled
  1  the job failed          4  an error of the job's machine or of the service
  2  wrong usage or refused  5  the service cannot be reached
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
        session = more.setdefault("obj", Session())
        words = next(iter(args), more.get("args"))
        sys.exit(run(lambda: super(Root, self).main(*args, **more), session, sys.argv[1:] if words is None else words))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would make it 1, which means that the job failed
            raise click.exceptions.Exit(EPIPE_CODE) from None


def run(call: Any, session: Session, words: Sequence[str]) -> int:
    """Run the command, print what went wrong, and return the exit code."""
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
        as_json = (session.json and not session.query) or "--json" in words  # also behind what could not be read
        Output(as_json=as_json, color=_wants_color(words)).error(problem)
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


def _wants_color(words: Sequence[str]) -> bool:
    return not ("--no-color" in words or os.environ.get("NO_COLOR"))


def _version() -> str:
    try:
        return metadata.version("penstock")
    except metadata.PackageNotFoundError:
        return "(not installed)"


cli = Root(
    "penstock",
    "Run jobs on scarce machines, with scarce resources.",
    ENTRIES,
    shown=True,
    epilog=EXITS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    no_args_is_help=True,
)


click.version_option(_version(), prog_name="penstock", message="%(prog)s %(version)s")(cli)
