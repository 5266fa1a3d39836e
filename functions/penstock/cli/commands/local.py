"""penstock local: the same service on this machine."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.config import LOCAL, Profile, remove_profile, save_profile
from penstock.cli.errors import Broken
from penstock.cli.framework import Command, Group
from penstock.cli.progress import Steps
from penstock.cli.session import Session, pass_session

if TYPE_CHECKING:
    from penstock.local.state import Running

LOOK_SECONDS = 2.0
"""How often a local cloud in the foreground is looked after."""

group = Group("local", "The same service on this machine: no account, no network, the same stack.")


@group.command(cls=Command)
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="The port to listen on (default: a free one).")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Jobs at a time (default: what the site says).")
@click.option(
    "--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The site (default: an example)."
)
@click.option("-d", "--detach", is_flag=True, help="Leave it running and return.")
@pass_session
def up(session: Session, port: int | None, workers: int | None, file: Path | None, detach: bool) -> None:
    """Start the local cloud, deploy to it, and print its URL and token; Ctrl-C ends it, unless --detach."""
    from penstock.local import cloud

    if file and not file.is_file():
        raise click.UsageError(f"--config: there is no file {file}")
    signal.signal(signal.SIGTERM, _as_interrupt)
    with _steps(session) as steps:
        running = cloud.up(report=steps, port=port, workers=workers, config=file, tied=not detach)
    save_profile(session.config_path, LOCAL, Profile(running.url, running.token))
    _show(session, running, token=True)
    if detach:
        if not session.json:
            session.out.note("`penstock local down` ends it")
        return
    session.out.note("running; Ctrl-C ends it")
    _wait(session)


@contextlib.contextmanager
def _steps(session: Session) -> Iterator[Steps]:
    """Shows progress. What the local cloud can't do ends the command with its message."""
    from penstock.local.state import LocalCloudError

    with Steps(session.out) as steps:
        try:
            yield steps
        except LocalCloudError as error:
            what, _, hint = str(error).partition("; ")
            raise Broken(what, hint or None) from error


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _wait(session: Session) -> None:
    """Until Ctrl-C, then take everything down. Raises Broken when the local cloud ends by itself."""
    from penstock.local import cloud

    try:
        while cloud.status():
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        _down(session)
        return
    remove_profile(session.config_path, LOCAL)
    raise Broken("the local cloud ended by itself", "`penstock local up` starts it again; its logs are in its folder")


@group.command(cls=Command)
@pass_session
def down(session: Session) -> None:
    """End the local cloud and everything it started."""
    _down(session)


def _down(session: Session) -> None:
    from penstock.local import cloud

    with _steps(session) as steps:
        cloud.down(steps)
    remove_profile(session.config_path, LOCAL)


@group.command(cls=Command)
@pass_session
def status(session: Session) -> None:
    """Show whether the local cloud is running, and where."""
    from penstock.local import cloud

    running = cloud.status()
    if running:
        _show(session, running, token=False)
    elif session.json:
        session.out.json({"running": False})
    else:
        session.out.line("not running")
        session.out.note("`penstock local up` starts it")


@group.command(cls=Command)
@pass_session
def reset(session: Session) -> None:
    """Forget all data: jobs, logs, users, configuration. The URL stays; the token is a new one."""
    from penstock.local import cloud

    with _steps(session) as steps:
        running = cloud.reset(steps)
    save_profile(session.config_path, LOCAL, Profile(running.url, running.token))
    _show(session, running, token=True)


def _show(session: Session, running: Running, *, token: bool) -> None:
    shown: dict[str, Any] = {"running": True, "url": running.url, "pid": running.pid, "home": str(running.home)}
    if token:
        shown["token"] = running.token
    if session.json:
        session.out.json(shown)
        return
    session.out.details((name, shown.get(name)) for name in ("url", "token", "pid", "home"))
    session.out.details([("profile", f"{LOCAL}, in {session.config_path}")])
