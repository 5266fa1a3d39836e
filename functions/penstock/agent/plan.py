"""Which tasks come before the job's script, and in which order."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .account import BUILD
from .failing import CLONE, LOGIN, RUST, SETUP
from .order import Order, Task
from .places import Places
from .prepare import TOOLCHAIN_FILE

MINUTE = 60.0


def wants_home(reply: dict[str, Any]) -> bool:
    """Tell whether something is put into the job's home before its script: a secret, or a toolchain."""
    return bool(reply.get("repository") or reply.get("toolchain"))


def planned(order: Order, places: Places) -> Order:
    """Return an order with the tasks before the script, all of them numbered in the order in which they run."""
    tasks = [*_setup(places), *_repository(order.reply, places), *_toolchain(order.reply, places), *order.tasks]
    return replace(order, tasks=[replace(task, index=at) for at, task in enumerate(tasks)])


def _setup(places: Places) -> Iterator[Task]:
    if places.alone:
        words = ("setup", BUILD.name, str(BUILD.uid), str(BUILD.gid), BUILD.home)
        task = _task(places, "setup", 5 * MINUTE, SETUP, "the machine could not be set up", {}, *words)
        yield replace(task, as_root=True)


def _repository(reply: dict[str, Any], places: Places) -> Iterator[Task]:
    told = reply.get("repository")
    if not told:
        return
    name, about = told["name"], {"repository": told["name"]}
    trouble = f"the job could not get its token for {name}"
    words = ("authentication", *told["machines"])
    yield _task(places, "authentication", 10 * MINUTE, LOGIN, trouble, about, *words)
    if told["clone"]:
        folder = places.on_machine(f"/work/{name}")
        about, trouble = {**about, "commit": told["sha"]}, f"the repository {name} could not be cloned"
        where = (told["url"], told["sha"], told["branch"], folder)
        yield _task(places, "clone repository", 60 * MINUTE, CLONE, trouble, about, "clone", *where)


def _toolchain(reply: dict[str, Any], places: Places) -> Iterator[Task]:
    channel, told = reply.get("toolchain"), reply.get("repository")
    if not channel:
        return
    how: tuple[str, ...] = ("toolchain", channel)
    if channel == TOOLCHAIN_FILE and told and not told["clone"]:
        how = ("toolchain-of", told["url"], told["sha"])
    elif channel == TOOLCHAIN_FILE:
        how = ("toolchain-named", places.on_machine(f"/work/{told['name']}" if told else "/work"))
    trouble = f"the Rust toolchain {channel} could not be installed"
    about = {"toolchain": channel}
    yield _task(places, "rust-toolchain", 30 * MINUTE, RUST, trouble, about, *how)


def _task(
    places: Places, name: str, seconds: float, kind: str, trouble: str, about: dict[str, Any], *words: str
) -> Task:
    """A task that is a program of this very file, run like a script."""
    program = shlex.join([sys.executable, "-I", "-S", places.program, "prepare", *words])
    return Task(
        0, name, f"exec {program}\n", {}, env_clear=False, workdir="/tmp", seconds=seconds, kind=kind,
        trouble=trouble, about=about,
    )  # fmt: skip
