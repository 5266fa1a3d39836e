"""Wells whose driver raises, answers nothing, ends its process or hangs, beside one that works: end to end. [UNIT-1]

A cloud of its own has them: their driver is a package of somebody else's, and is in the functions' layer.
"""

from __future__ import annotations

import textwrap
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.local import cloud
from penstock.local.state import StateFolder
from penstock.testing.site import site_toml
from tests.e2e.conftest import Local

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("misbehaving")]

HOW = ("raises", "nothing", "exits", "hangs")
NAMED = {"raises": "raised ValueError: it is odd", "nothing": "None", "hangs": "did not answer within 60 s"}

DRIVER = """
    import os, time
    from penstock.domain.units.units import CleanProof
    from penstock.ports import Ready

    class OddWell:
        def __init__(self, settings, environment):
            self._how = settings["how"]

        @staticmethod
        def complaints(settings):
            return []

        @staticmethod
        def objections(options):
            return []

        def create(self, order):
            if self._how == "works":
                return Ready({"name": order.id})
            if self._how == "raises":
                raise ValueError("it is odd")
            if self._how == "exits":
                os._exit(3)
            while self._how == "hangs":
                time.sleep(1)

        def destroy(self, unit, now):
            return CleanProof(by="odd", time=now, checked=unit)

        def list(self):
            return []
"""

SITE = site_toml(
    factories={"here": "process"},
    targets={"default": {"factory": "here", "limit": 8}},
    wells={name: {"driver": "odd", "how": name} for name in (*HOW, "works")},
    resources={name: {"well": name, "limit": 20} for name in (*HOW, "works")},
    limits={"heartbeat": "1s", "lease": "8s", "grace": "2s"},
)


def package(folder: Path) -> Path:
    """The package as a wheel, and the list that names it."""
    info = "odd-1.0.dist-info"
    files = {
        "odd.py": textwrap.dedent(DRIVER),
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: odd\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[penstock.wells]\nodd = odd:OddWell\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(folder / "odd-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(zipfile.ZipInfo(name), text)
    (folder / "drivers.txt").write_text("./odd-1.0-py3-none-any.whl\n")
    return folder / "drivers.txt"


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "site.toml").write_text(SITE)
    place = StateFolder(folder / "state")
    running = cloud.up(
        report=print, config=folder / "site.toml", tied=True, place=place, context={"drivers": str(package(folder))}
    )
    try:
        yield Local(running, folder, place.key(), place)
    finally:
        cloud.down(print, place)


def says(odd: Local, job: str, what: str) -> bool:
    """Whether `why` tells whoever waits for a job what its well's driver does."""
    return what in odd.cli("job", "why", job).stdout


def end(odd: Local, jobs: list[str]) -> None:
    """Cancel jobs that wait for what never comes; nothing of them is left."""
    for job in jobs:
        assert odd.cli("job", "cancel", job).returncode == 0
    for job in jobs:
        assert odd.settled(job)["outcome"] == "cancelled"
    odd.put_back()


def test_nobody_waits_for_what_another_wells_driver_does(odd: Local) -> None:
    """Before, an unrelated job waited for 165 s beside seven such jobs, and nothing said why."""
    stuck = {how: [odd.submit("true", "--resource", how) for _ in range(3)] for how in HOW}
    every = [job for jobs in stuck.values() for job in jobs]
    for _ in range(3):
        fine = odd.settled(odd.submit("echo fine", "--resource", "works"))
        assert (fine["outcome"], fine["attempt"]) == ("succeeded", 1)
    assert {odd.job(job)["state"] for job in every} == {"acquiring"}
    for how, what in NAMED.items():
        for job in stuck[how]:
            odd.until(lambda job=job, what=what: says(odd, job, what))
        assert odd.json("well", "show", how)["failures"], how
    end(odd, every)


@pytest.mark.long
def test_a_driver_that_ends_its_process_is_named_when_no_answer_can_come_any_more(odd: Local) -> None:
    """That is after three minutes: until then a function may still be at it."""
    job = odd.submit("true", "--resource", "exits")
    for _ in range(2):
        if not says(odd, job, "left no answer"):
            with suppress(pytest.fail.Exception):
                odd.until(lambda: says(odd, job, "left no answer"))
    assert says(odd, job, "left no answer")
    assert odd.json("well", "show", "exits")["failures"]
    end(odd, [job])
