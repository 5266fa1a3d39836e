"""`agent.pyz host`: its options, and what it refuses to start with."""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from pathlib import Path

from .host import Host
from .log import log
from .office import Office, Token
from .places import Places
from .standing import Standing

WRONG_USAGE = 2


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `host`."""
    parser.add_argument("--url", required=True, help="the service's URL")
    parser.add_argument("--host", required=True, metavar="NAME", help="this machine's name in the site")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="where its token is (or PENSTOCK_TOKEN)")
    parser.add_argument("--root", type=Path, metavar="DIR", help="where jobs have their files; / is the machine itself")
    parser.add_argument("--state", type=Path, metavar="DIR", help="where it keeps what it is at")


def state_folder(name: str) -> Path:
    """Where a host keeps what it is at, if nobody says: under systemd its StateDirectory."""
    given = os.environ.get("STATE_DIRECTORY")
    if given:
        return Path(given)
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(home, "penstock", name)


def serve(args: argparse.Namespace) -> int:
    """Be a host's agent until told to terminate. Return the exit code."""
    state = (args.state or state_folder(args.host)).absolute()
    token = Token(args.token_file, os.environ.pop("PENSTOCK_TOKEN", ""))
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        places = Places(os.path.realpath(args.root or state / "root"))
        places.make()
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
    standing = Standing.load(state)
    office = Office(args.url.rstrip("/"), args.host, token, standing.session())
    return Host(office, standing, places, os.path.realpath(sys.argv[0])).serve()
