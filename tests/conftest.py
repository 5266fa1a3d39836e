"""For all tests: what a shell in the background would take from them, and the server that some share."""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.postgres.cluster import Cluster

# A shell starts what it runs in the background with SIGINT ignored, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more about the machine than about the code. Who commits is asked of the same examples
# each time; `make prove` looks for others.
settings.register_profile("penstock", deadline=None, derandomize=True)
settings.register_profile("quick", settings.get_profile("penstock"), max_examples=10)
settings.register_profile("explore", deadline=None, derandomize=False, max_examples=2000)
settings.load_profile("penstock")


HERE = Path(__file__).parent
END_TO_END = HERE / "e2e"
WAITING = ("agent", "cli", "local")
"""Folders whose tests mostly wait for what they started."""

LONG = (
    "examples", "e2e", "misbehaving", "packages", "web", "jobs", "release", "postgres", "upgrade", "secrecy",
    "infra", "github", "grants", "mutate/", "model/", "e2e/", "ec2/", "many", "concurrency", "local/", "crash/",
)  # fmt: skip
"""Groups of `make e2e` that take longest, and folders with tests of no group: they begin first, so that no process is
left with one at the end. Of the first four, one for each process, one mostly waits: four that compute would slow each
other down.
"""


ONLY_END_TO_END = ("e2e", "e2e and not long")
"""What `-m` says where no other tests are asked for."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where only end-to-end tests are asked for, leave out the files that have none: to import them all takes long."""
    is_left_out = config.option.markexpr in ONLY_END_TO_END and collection_path.suffix == ".py"
    return True if is_left_out and not names_end_to_end(collection_path) else None


@cache
def names_end_to_end(path: Path) -> bool:
    """Whether a test of a file may be an end-to-end test: the file, or a conftest.py beside or above it, names them."""
    if path == HERE / "conftest.py" or not path.is_relative_to(HERE):
        return False
    if path.is_relative_to(END_TO_END) or (path.is_file() and "e2e" in path.read_text(encoding="utf-8")):
        return True
    above = path.parent if path.name != "conftest.py" else path.parents[1]
    return names_end_to_end(above / "conftest.py")


@cache
def folder_of(path: Path) -> str:
    """The folder of tests/ that a file is in. All tests of a file ask for it."""
    return path.relative_to(HERE).parts[0]


LONGEST_ID = 80


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a test of a long text by its beginning: else a failure prints all of it, and each process sends it."""
    return f"{val[:LONGEST_ID]!r}..." if isinstance(val, str | bytes) and len(val) > LONGEST_ID else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector rest: what is imported and collected stays, and a look at it all takes long.

    It does not look at it during the tests either, and begins to look later than by default: most of what tests make
    is gone before.
    """
    gc.disable()
    gc.set_threshold(50_000, 20, 100)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark all tests in tests/e2e as end-to-end tests. No branch counts as taken because a random example took it.

    Tests that wait come one after the other in one process for each folder, so that the other processes compute.
    """
    folder = folder_of(item.path)
    if folder == END_TO_END.name:
        item.add_marker("e2e")
    if folder in WAITING and not item.get_closest_marker("e2e"):
        item.add_marker(pytest.mark.xdist_group(folder))
    if item.get_closest_marker("e2e") and not names_end_to_end(item.path):
        # Not a UsageError: xdist does not show those of its processes.
        raise LookupError(f"`make e2e` would not find {item.nodeid}: write e2e into its file")
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker("no_cover")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """See that tests of a group are in one process: pytest 9.2 and xdist 3.8 together scatter them, and say nothing.

    What takes longest comes first.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    scattered = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
    if scattered:
        raise pytest.UsageError(f"{len(scattered)} tests are not in their groups; is this xdist made for this pytest?")
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    """The place of a test's group, or of its folder if it has none, in LONG; after them all for any other test."""
    marker = item.get_closest_marker("xdist_group")
    name = marker.args[0] if marker else f"{folder_of(item.path)}/"
    return LONG.index(name) if name in LONG else len(LONG)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """See that no browser is at work while a test makes networks: Chromium gives up what it loads when one comes or
    goes, with ERR_NETWORK_CHANGED. The networks are the machine's, and so is what is locked: any user can.
    """
    if not item.get_closest_marker("networks"):
        return (yield)
    folder = os.open(tempfile.gettempdir(), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        return (yield)
    finally:
        os.close(folder)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL server. Who uses it is of the xdist group `postgres`, so that there is one."""
    from tests.postgres import cluster  # which no other test needs to import

    programs = cluster.programs()
    if programs is None:
        pytest.skip(cluster.MISSING)
    with cluster.running(programs) as server:
        yield server
