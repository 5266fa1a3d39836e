"""penstock local and penstock agent: what runs on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import click
from rich.status import Status

from penstock.cli import extras, terminal, times
from penstock.cli.command import Command, Group, Session, pass_session
from penstock.cli.config import LOCAL, Profile, remove_profile, save_profile, use_profile, warn_of_variables
from penstock.cli.errors import Broken, Refused
from penstock.cli.output import Output

if TYPE_CHECKING:
    from penstock.local.state import Running


class Steps(AbstractContextManager["Steps"]):
    """Called with a sentence at the beginning of each step."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._status = Status("", console=out.errors) if out.errors.is_terminal else None
        self._step: str | None = None
        self._since = time.monotonic()

    def __call__(self, step: str) -> None:
        self._finish("✓", "green")
        self._step, self._since = step, time.monotonic()
        if self._status:
            self._status.update(step)
        else:
            self._out.note(step)

    def __enter__(self) -> Steps:
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish(*(("✗", "red") if error else ("✓", "green")))
        if self._status:
            self._status.stop()

    def _finish(self, mark: str, style: str) -> None:
        if self._step and self._status:
            spent = times.duration(time.monotonic() - self._since)
            self._out.note(f"{mark} {self._step} ({spent})", style)
        self._step = None


LOOK_SECONDS = 2.0
"""Seconds between two checks that a local cloud in the foreground still runs."""

group = Group("local", "Run the whole service on this machine, without a cloud account or a network.")


@group.command(cls=Command)
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Port to listen on (default: a free one).")
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Number of jobs that run at the same time (default: as the site says).",
)
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Site configuration to apply (default: an example with a bench and two licences).",
)
@click.option("-d", "--detach", is_flag=True, help="Return and leave it running.")
@pass_session
def up(session: Session, port: int | None, workers: int | None, file: Path | None, detach: bool) -> None:
    """Start the local cloud, print its URL, its console's and its token, and use it as the profile `local`.

    Ctrl-C stops it, unless you give --detach. If a local cloud runs already, this shows it, and Ctrl-C leaves it.
    """
    extras.require("local")
    from penstock.local import cloud

    if file and not file.is_file():
        raise click.UsageError(f"--config: there is no file {file}")
    signal.signal(signal.SIGTERM, _as_interrupt)
    with _steps(session) as steps:
        console = _console(session, steps)
        running = cloud.up(report=steps, port=port, workers=workers, config=file, tied=not detach, console=console)
    _use(session, running)
    _show(session, running, token=True)
    if detach:
        if not session.json:
            session.out.note("`penstock local down` ends it, with all its data; --keep keeps them")
    elif cloud.owns(running):
        session.out.note("running; Ctrl-C ends it, with all its data")
        _wait(session)
    else:
        _attach(session, [port, workers, file])


def _console(session: Session, steps: Steps) -> Path | None:
    """The console, built if it has to be. Without one the cloud comes up all the same, and this says why."""
    from penstock.console import build

    try:
        return build.built(steps)
    except build.ConsoleError as error:
        session.out.note(f"there is no console: {error}", "yellow")
        return None


def _use(session: Session, running: Running) -> None:
    """Save the profile, and use it from now on."""
    save_profile(session.config_path, LOCAL, Profile(running.url, running.token))
    use_profile(session.config_path, LOCAL)
    if not session.json:
        warn_of_variables(session.out.note)


def _attach(session: Session, unused: list[object]) -> None:
    """Stay as long as a local cloud that another command started. Ctrl-C leaves it."""
    from penstock.local import cloud

    if any(unused):
        session.out.note("--port, --workers and --config change nothing: it runs already", "yellow")
    session.out.note("another command started it; Ctrl-C leaves it running, `penstock local down` ends it")
    try:
        while cloud.status():
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        session.out.note("it still runs")
        return
    session.out.note("it was ended")


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
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--keep", is_flag=True, help="Keep its data for the next `penstock local up`.")
@pass_session
def down(session: Session, yes: bool, keep: bool) -> None:
    """Stop the local cloud and every process that it started, and delete its data.

    Says what will be deleted; on a terminal it asks before. Jobs that hold something are cancelled first, and what they
    hold is given back and cleaned. Ctrl-C skips that. With --keep, jobs, logs, files, users and the configuration are
    there again after the next `penstock local up`, and jobs that wait go on waiting.
    """
    from penstock.local import cloud

    running = cloud.status()
    if not keep and (running or cloud.keeps()):
        _tell_what_goes(session, running)
        if not yes and terminal.can_ask():
            click.confirm("End it and delete that?", abort=True, err=True)
    _down(session, keep=keep)


def _tell_what_goes(session: Session, running: Running | None) -> None:
    """Say what a local cloud has, or that one that does not run has kept something."""
    import httpx

    from penstock.local import cloud, giveback
    from penstock.local.state import LocalCloudError

    if running is None:
        session.out.note("no local cloud runs; this deletes what an earlier one has kept")
        return
    session.out.note(f"this ends the local cloud at {running.url} and deletes all that is in it:")
    try:
        lines = giveback.contents(cloud.call, running)
    except (LocalCloudError, httpx.HTTPError):
        lines = ["it does not answer, so what is in it is not known"]
    for line in lines:
        session.out.note(f"  {line}")


def _down(session: Session, *, keep: bool = False) -> None:
    from penstock.local import cloud

    with _steps(session) as steps:
        left = cloud.down(steps, give_back=True, keep=keep)
    remove_profile(session.config_path, LOCAL)
    if left:
        session.out.note("what was left, and has to be cleaned by hand if it is outside this machine:", "yellow")
        for line in left:
            session.out.note(f"  {line}", "yellow")


@group.command(cls=Command)
@pass_session
def status(session: Session) -> None:
    """Show whether the local cloud is running, and its URL."""
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
    """Delete all data: jobs, logs, users, configuration. The URL stays the same; the token changes."""
    extras.require("local")
    from penstock.local import cloud

    with _steps(session) as steps:
        running = cloud.reset(steps, console=_console(session, steps) if cloud.status() else None)
    _use(session, running)
    _show(session, running, token=True)


def _show(session: Session, running: Running, *, token: bool) -> None:
    shown: dict[str, Any] = {
        "running": True,
        "url": running.url,
        "console": running.console or None,
        "pid": running.pid,
        "home": str(running.home),
    }
    if token:
        shown["token"] = running.token
    if session.json:
        session.out.json(shown)
        return
    session.out.details((name, shown.get(name)) for name in ("url", "console", "token", "pid", "home"))
    session.out.details([("profile", f"{LOCAL}, in {session.config_path}")])


FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(cls=Command, epilog="Example: penstock agent --host bench-7 --token-file bench-7.token --root /")
@click.option("--host", required=True, metavar="NAME", help="Name of this machine in the site's configuration.")
@click.option("--token-file", type=click.Path(dir_okay=False, path_type=Path), help="File with the host's token.")
@click.option("--root", type=FOLDER, help="Root folder for job files; / uses the machine itself.")
@click.option("--user", metavar="NAME", help="User that jobs run as, who cannot reach the agent; needs root.")
@click.option(
    "--containers", metavar="ENGINE", help="docker, podman or a path: jobs that share this host run in containers."
)
@click.option("--state", type=FOLDER, help="Folder for the agent's state.")
@pass_session
def agent(
    session: Session,
    host: str,
    token_file: Path | None,
    root: Path | None,
    user: str | None,
    containers: str | None,
    state: Path | None,
) -> None:
    """Run jobs on this machine, and clean up after each, until you stop it.

    Runs the same agent as `$URL/v1/agent/agent.pyz`, with the same options.
    """
    from penstock import agentfile
    from penstock.agent.host import state_folder

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
    words += ["--user", user] if user else []
    words += ["--containers", containers] if containers else []
    words += ["--token-file", str(token_file)] if token_file else []
    kept = {name: value for name, value in os.environ.items() if name != "PENSTOCK_TOKEN"}
    given = {} if token_file or not target.token else {"PENSTOCK_TOKEN": target.token}
    os.execve(sys.executable, [sys.executable, str(program), "host", *words], kept | given)
