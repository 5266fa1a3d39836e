"""The command line: `agent.pyz run --config FILE`, `agent.pyz host --url URL --host NAME`, `bmat` and `prepare`.

Each command imports only what it needs: scripts call `bmat` often, so it must start fast.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def main(argv: list[str]) -> int:
    """Run the agent, bmat or a preparation program, as the call's name or first argument says. Return the exit code."""
    as_bmat = argv[1:] if os.path.basename(argv[0]) == "bmat" else argv[2:] if argv[1:2] == ["bmat"] else None
    if as_bmat is not None:
        from .bmat import bmat

        return bmat(as_bmat)
    if argv[1:2] == ["prepare"]:
        from .prepare import prepare

        return prepare(argv[2:])
    return agent(argv[1:])


def agent(arguments: list[str]) -> int:
    """Run a worker's agent or a host's. Return the exit code: 1 if the agent failed."""
    import traceback

    from .machine import log

    options = parse_options(arguments)
    try:
        if options.pop("command") == "host":
            from .host import serve_host

            return serve_host(**options)
        from .worker import run_worker

        return run_worker(options["config"])
    except Exception:
        log(f"the agent failed:\n{traceback.format_exc()}")
        return 1


def parse_options(arguments: list[str]) -> dict[str, Any]:
    """Return the `command` and its options. Exits with 2 for wrong usage."""
    import argparse
    from pathlib import Path

    parser = argparse.ArgumentParser(prog="agent.pyz", description="The agent of a Penstock worker.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    run = commands.add_parser("run", help="run this worker's job")
    run.add_argument("--config", type=Path, required=True, help="JSON file: url, worker, key, and perhaps root")
    host = commands.add_parser("host", help="serve as a machine that exists already, job after job")
    host.add_argument("--url", required=True, help="the service's URL")
    host.add_argument("--host", required=True, metavar="NAME", help="this machine's name in the site")
    host.add_argument("--token-file", type=Path, metavar="FILE", help="file with the host's token (or PENSTOCK_TOKEN)")
    host.add_argument("--root", type=Path, metavar="DIR", help="folder for job files; / is the machine itself")
    host.add_argument("--user", metavar="NAME", help="user that jobs run as, who cannot reach the agent (needs root)")
    host.add_argument(
        "--containers", metavar="ENGINE", help="docker, podman or a path: jobs that share this host run in containers"
    )
    host.add_argument("--state", type=Path, metavar="DIR", help="folder for the agent's state")
    return vars(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
