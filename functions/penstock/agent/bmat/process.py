"""`bmat process` and `bmat post`: commands that run beside the task, or after all tasks."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Any

from .facts import ask


def start(args: argparse.Namespace) -> Iterator[str]:
    """Start a command where this one runs, and with its environment."""
    ask({"do": "process", "name": args.name, **_like_this([args.program, *args.arguments])})
    return iter(())


def post(args: argparse.Namespace) -> Iterator[str]:
    """Have a command run after the tasks, where this one runs, and with its environment."""
    ask({"do": "post", "when": args.when, "name": args.name, **_like_this([args.program, *args.arguments])})
    return iter(())


def _like_this(command: list[str]) -> dict[str, Any]:
    env = {name: value for name, value in os.environ.items() if name != "PENSTOCK_SOCKET"}
    return {"command": command, "cwd": os.getcwd(), "env": env}
