"""penstock openapi, completion."""

from __future__ import annotations

import click

from penstock.cli.errors import Refused
from penstock.cli.framework import Command
from penstock.cli.session import Session, pass_session

SHELLS = ["bash", "zsh", "fish"]


@click.command(cls=Command)
@pass_session
def openapi(session: Session) -> None:
    """Print the service's OpenAPI document."""
    session.out.json(session.api.get("openapi.json"))


@click.command(cls=Command, epilog="""Example: penstock completion bash >> ~/.bashrc""")
@click.argument("shell", type=click.Choice(SHELLS), metavar="bash|zsh|fish")
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a shell's completion script."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise Refused(f"no completion for {shell}", f"there is one for {', '.join(SHELLS)}")
    root = ctx.find_root()
    click.echo(kind(root.command, {}, "penstock", "_PENSTOCK_COMPLETE").source())
