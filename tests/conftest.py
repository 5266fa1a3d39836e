"""For all tests: what a shell in the background would take from them, and the server that some share."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Iterator
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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector rest: what is imported and collected stays, and a look at it all takes long.

    It does not look at it during the tests either.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark all tests in tests/e2e as end-to-end tests. No branch counts as taken because a random example took it.

    Tests that wait come one after the other in one process for each folder, so that the other processes compute.
    """
    if item.path.is_relative_to(END_TO_END):
        item.add_marker("e2e")
    folder = item.path.relative_to(HERE).parts[0]
    if folder in WAITING and not item.get_closest_marker("e2e"):
        item.add_marker(pytest.mark.xdist_group(folder))
    if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
        item.add_marker("no_cover")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """See that tests of a group are in one process: pytest 9.2 and xdist 3.8 together scatter them, and say nothing."""
    if not getattr(config.option, "loadgroup", False):
        return
    scattered = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
    if scattered:
        raise pytest.UsageError(f"{len(scattered)} tests are not in their groups; is this xdist made for this pytest?")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL server. Who uses it is of the xdist group `postgres`, so that there is one."""
    from tests.postgres import cluster  # which no other test needs to import

    programs = cluster.programs()
    if programs is None:
        pytest.skip(cluster.MISSING)
    with cluster.running(programs) as server:
        yield server
