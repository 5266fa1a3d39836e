"""penstock agent: serve as a machine that exists already."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from penstock.cli.errors import Refused
from penstock.cli.framework import Command
from penstock.cli.session import Session, pass_session

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(cls=Command, epilog="Example: penstock agent --host bench-7 --token-file bench-7.token --root /")
@click.option("--host", required=True, metavar="NAME", help="This machine's name in the site's configuration.")
@click.option("--token-file", type=click.Path(dir_okay=False, path_type=Path), help="Where the host's token is.")
@click.option("--root", type=FOLDER, help="Where jobs have their files; / is the machine itself.")
@click.option("--state", type=FOLDER, help="Where it keeps what it is at.")
@pass_session
def agent(session: Session, host: str, token_file: Path | None, root: Path | None, state: Path | None) -> None:
    """Serve as the host NAME until told to stop: run its jobs, one after the other, and clean up after each.

    It runs the agent that `curl $URL/v1/agent/agent.pyz` fetches, with the same options.
    """
    from penstock import agentfile
    from penstock.agent.cli import state_folder

    folder = (state or state_folder(host)).absolute()
    program = folder / "agent.pyz"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = folder / f"agent.{os.getpid()}"
        draft.write_bytes(agentfile.build())
        draft.replace(program)
    except OSError as error:
        raise Refused(f"can't write {program}: {error}", "choose another --state") from error
    target = session.target
    words = ["--url", target.url, "--host", host, "--state", str(folder)]
    words += ["--root", str(root)] if root else []
    words += ["--token-file", str(token_file)] if token_file else []
    kept = {name: value for name, value in os.environ.items() if name != "PENSTOCK_TOKEN"}
    given = {} if token_file or not target.token else {"PENSTOCK_TOKEN": target.token}
    os.execve(sys.executable, [sys.executable, str(program), "host", *words], kept | given)
