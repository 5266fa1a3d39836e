"""The command line: `agent.pyz run --config FILE` and `agent.pyz host --url URL --host NAME`."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import traceback
from pathlib import Path

from .host import Host, HostClient, HostState, HostToken
from .log import log
from .machine import Machine
from .worker import run_worker

WRONG_USAGE = 2


def add_host_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `host`."""
    parser.add_argument("--url", required=True, help="the service's URL")
    parser.add_argument("--host", required=True, metavar="NAME", help="this machine's name in the site")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="where its token is (or PENSTOCK_TOKEN)")
    parser.add_argument("--root", type=Path, metavar="DIR", help="where jobs have their files; / is the machine itself")
    parser.add_argument("--state", type=Path, metavar="DIR", help="where it keeps what it is at")


def state_folder(name: str) -> Path:
    """Return the default folder for a host's state: under systemd its StateDirectory."""
    given = os.environ.get("STATE_DIRECTORY")
    if given:
        return Path(given)
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home, "penstock", name)


def serve_host(args: argparse.Namespace) -> int:
    """Serve as a host's agent until a signal ends it. Return the exit code."""
    state = (args.state or state_folder(args.host)).absolute()
    token = HostToken(args.token_file, os.environ.pop("PENSTOCK_TOKEN", ""))
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        machine = Machine(os.path.realpath(args.root or state / "root"))
        machine.make()
        lock = os.open(state / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        token.read()
    except OSError as why:
        log(f"this host cannot be served: {why}")
        return WRONG_USAGE
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        log(f"another agent of a host works in {state}; give this one a --state of its own")
        return WRONG_USAGE
    host_state = HostState.load(state)
    client = HostClient(args.url.rstrip("/"), args.host, token, host_state.session())
    return Host(client, host_state, machine, os.path.realpath(sys.argv[0])).serve()


def agent(arguments: list[str]) -> int:
    """Run `run` or `host`. Return the exit code: 1 if the agent failed."""
    parser = argparse.ArgumentParser(prog="agent.pyz", description="The agent of a Penstock worker.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    runner = commands.add_parser("run", help="run this worker's job")
    runner.add_argument("--config", type=Path, required=True, help="JSON file: url, worker, key, and perhaps root")
    add_host_options(commands.add_parser("host", help="serve as a machine that exists already, job after job"))
    args = parser.parse_args(arguments)
    try:
        return run_worker(args.config) if args.command == "run" else serve_host(args)
    except Exception:
        log(f"the agent failed:\n{traceback.format_exc()}")
        return 1
