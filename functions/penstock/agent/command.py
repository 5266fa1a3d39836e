"""`agent.pyz run --config FILE`, `agent.pyz host --url URL --host NAME`."""

from __future__ import annotations

import argparse
import traceback
from pathlib import Path

from .hosting import options, serve
from .life import live
from .log import log


def agent(arguments: list[str]) -> int:
    """Run this worker's job. Return the exit code; 1 for whatever went wrong here."""
    parser = argparse.ArgumentParser(prog="agent.pyz", description="The agent of a Penstock worker.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    runner = commands.add_parser("run", help="run this worker's job")
    runner.add_argument("--config", type=Path, required=True, help="JSON file: url, worker, key, and perhaps root")
    options(commands.add_parser("host", help="serve as a machine that exists already, job after job"))
    args = parser.parse_args(arguments)
    try:
        return live(args.config) if args.command == "run" else serve(args)
    except Exception:
        log(f"the agent failed:\n{traceback.format_exc()}")
        return 1
