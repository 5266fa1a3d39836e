"""`penstock driver`: the page's own example, installed by its entry point, and drivers that break their promises."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers import Registry
from penstock.ports import Order, Ready, UnitContext
from penstock.testing.contract import Rig
from tests.cli.conftest import plain as run
from tests.cli.screens import run_on_terminal

PAGE = (Path(__file__).parents[2] / "docs/drivers/writing-a-driver.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)

BREAKS = {
    "forgets": (
        "what is made is listed, for everybody, until it is destroyed",
        "def list(self):\n        return []",
    ),
    "makes another each time": (
        "made twice, it is one, and the answers are the same",
        "def create(self, order):\n        self._shelf.mkdir(parents=True, exist_ok=True)\n"
        "        import uuid\n        return Ready({'path': str(uuid.uuid4())})",
    ),
    "minds what is gone": (
        "destroying what is gone, or never was, is a success",
        "def destroy(self, unit, now):\n        shutil.rmtree(self._shelf / unit)\n"
        "        return CleanProof(by='shelf', time=now, checked='it')",
    ),
    "does half before it can be listed": (
        "what a create made that died is gone when it is destroyed",
        "def create(self, order):\n"
        "        draft = self._shelf / f'{order.id}-draft'\n"
        "        if (self._shelf / order.id).exists():\n            return Ready({})\n"
        "        draft.mkdir(parents=True)\n"
        "        draft.rename(self._shelf / order.id)\n"
        "        return Ready({})\n"
        "    def list(self):\n"
        "        return [each.name[:28] for each in self._shelf.iterdir()] if self._shelf.exists() else []",
    ),
    "proves nothing": (
        "destroying what is gone, or never was, is a success",
        "def destroy(self, unit, now):\n        return CleanProof(by='shelf', time=now, checked='')",
    ),
    "cannot clean": (
        "what it keeps is cleaned, and made ready for the next",
        "clean = None",
    ),
    "makes something although it says that it does not": (
        "what makes nothing answers at once",
        "makes_nothing = True",
    ),
    "checks nothing": (
        "its settings are checked",
        "@staticmethod\n    def complaints(settings):\n        return []",
    ),
}  # fmt: skip


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of the page, as pip would have put it there."""
    folder = tmp_path / "site"
    info = folder / "shelf-1.2.dist-info"
    info.mkdir(parents=True)
    (folder / "shelf.py").write_text(BLOCKS[0])
    (folder / "broken.py").write_text("raise RuntimeError('no such luck')")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[penstock.wells]\nshelf = shelf:ShelfWell\nbroken = broken:Well\n")
    (tmp_path / "shelf.toml").write_text(f'path = "{tmp_path / "things"}"\n')
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in ("shelf", "broken", "odd"):
        sys.modules.pop(name, None)


def test_an_installed_driver_is_registered(installed: Path, tmp_path: Path) -> None:
    registry = Registry({})
    settings = {"path": str(tmp_path)}
    assert registry.complaints("well", "shelf", settings) == []
    assert registry.complaints("well", "shelf", {}) == ["the shelf driver needs a path"]
    assert registry.reusable("well", "shelf")
    made = registry.well("shelf", settings, "here").create(Order("r-1", "thing", "1"))
    assert isinstance(made, Ready)
    assert "no such luck" in registry.complaints("well", "broken", {})[0]


def test_a_driver_is_found_that_is_installed_while_a_process_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The functions of a local cloud are such processes."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    registry, settings = Registry({}), {"path": str(tmp_path)}
    assert "there is no well driver 'late'" in registry.complaints("well", "late", settings)[0]
    info = folder / "late-1.0.dist-info"
    info.mkdir()
    (folder / "latecomer.py").write_text(BLOCKS[0])
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[penstock.wells]\nlate = latecomer:ShelfWell\n")
    assert registry.complaints("well", "late", settings) == []


def test_the_documented_driver_leaves_alone_what_it_did_not_make(installed: Path, tmp_path: Path) -> None:
    """What else is in its folder, and what another well made there."""
    mine, others = (Registry({}).well("shelf", {"path": str(tmp_path / "things")}, name) for name in ("mine", "theirs"))
    others.create(Order("r-2", "thing", "1"))
    (tmp_path / "things" / "papers").mkdir()
    mine.create(Order("r-1", "thing", "1"))
    assert list(mine.list()) == ["r-1"]
    mine.destroy("r-1", datetime.now(UTC))
    assert (list(mine.list()), list(others.list())) == ([], ["r-2"])
    assert (tmp_path / "things" / "papers").is_dir()


def test_driver_list_shows_own_and_installed_drivers(installed: Path) -> None:
    found = {(each["kind"], each["name"]): each for each in json.loads(run("driver", "list", "--json").stdout)}
    assert {("factory", "ec2"), ("factory", "process"), ("well", "lock"), ("well", "http")} <= found.keys()
    shelf = found["well", "shelf"]
    assert (shelf["package"], shelf["where"], shelf["says"], shelf["trouble"]) == (
        "shelf 1.2", "shelf:ShelfWell", ["reusable"], None,
    )  # fmt: skip
    assert "no such luck" in found["well", "broken"]["trouble"]
    assert found["well", "lock"]["package"] == "penstock"


@pytest.mark.parametrize("name", ["shelf", "shelf:ShelfWell"])
def test_the_documented_driver_passes_all_checks(installed: Path, tmp_path: Path, name: str) -> None:
    done = run("driver", "test", name, "--settings", str(tmp_path / "shelf.toml"), "--points", "100")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert "12 checks, 0 failed" in done.output
    assert "12 checks, 0 failed" in PAGE
    for line in re.findall(r"^ok      .*$", PAGE, re.M):
        assert line in lines
    assert [each for each in (tmp_path / "things").rglob("*") if each.parent.name.startswith("test-")] == []


@pytest.mark.parametrize("breaks", BREAKS)
def test_a_driver_that_fails_a_check_is_reported(installed: Path, tmp_path: Path, breaks: str) -> None:
    promise, code = BREAKS[breaks]
    (installed / "odd.py").write_text(f"{BLOCKS[0]}\n\nclass Odd(ShelfWell):\n    {code}\n")
    done = run("driver", "test", "odd:Odd", "--settings", str(tmp_path / "shelf.toml"), "--patience", "3", "--json")
    assert done.exit_code == 1
    wrong = {each["check"]: each["wrong"] for each in json.loads(done.stdout) if each["wrong"]}
    assert promise in wrong


def test_a_driver_that_says_that_it_makes_nothing_need_not_list(installed: Path) -> None:
    done = run("driver", "test", "lock", "--lag", "0")
    assert (done.exit_code, done.output.count("ok      ")) == (0, 12)


def test_a_list_that_stays_wrong_is_reported_after_the_lag(installed: Path, tmp_path: Path) -> None:
    """Not after ten minutes for each check."""
    code = "def list(self):\n        return ()"
    (installed / "odd.py").write_text(f"{BLOCKS[0]}\n\nclass Odd(ShelfWell):\n    {code}\n")
    settings = ("--settings", str(tmp_path / "shelf.toml"))
    done = run("driver", "test", "odd:Odd", *settings, "--points", "1", "--lag", "0.5")
    assert done.exit_code == 1
    assert len(re.findall(r"it lists none, where there should be r-\w+(?:, r-\w+)?, for 1 s", done.output)) > 3


def test_a_terminal_shows_the_check_that_runs(installed: Path, tmp_path: Path) -> None:
    code = "def list(self):\n        return ()"
    (installed / "odd.py").write_text(f"{BLOCKS[0]}\n\nclass Odd(ShelfWell):\n    {code}\n")
    settings = ("--settings", str(tmp_path / "shelf.toml"))
    seen = run_on_terminal(["driver", "test", "odd:Odd", *settings, "--points", "1", "--lag", "0.5"])
    promise = "what is made is listed, for everybody, until it is destroyed"
    first = next(line for screen in seen.screens for line in screen if line.endswith(promise))
    assert first[1:].strip() == promise, "nothing but a spinner before it"
    assert f"FAILED  {promise}" in seen.written


class Fenced:
    """A driver that notes under which fence it is called for which unit."""

    reusable = True
    called: ClassVar[list[tuple[str, int]]] = []

    def __init__(self, fence: int = 0) -> None:
        self.fence = fence

    def with_context(self, of: UnitContext) -> Fenced:
        return Fenced(of.fence)

    def create(self, order: Order) -> Ready:
        self.called.append(("create", self.fence))
        return Ready()

    def clean(self, unit: str, now: datetime) -> CleanProof:
        self.called.append(("clean", self.fence))
        return CleanProof(by="fenced", time=now, checked="all")

    def destroy(self, unit: str, now: datetime) -> CleanProof:
        self.called.append(("destroy", self.fence))
        return CleanProof(by="fenced", time=now, checked="all")

    def list(self) -> list[str]:
        return []


def test_each_lease_has_a_higher_fence_than_those_before() -> None:
    Fenced.called.clear()
    rig = Rig(Fenced)
    one, two = rig.unit(), rig.unit()
    rig.create(one)
    rig.create(one)
    rig.clean(one)
    rig.clean(one)
    rig.create(one)
    rig.destroy(one)
    rig.create(two)
    rig.destroy(two)
    names = ["create", "create", "clean", "clean", "create", "destroy", "create", "destroy"]
    assert Fenced.called == list(zip(names, [1, 1, 1, 1, 2, 2, 3, 3], strict=True))


@pytest.mark.parametrize("name", ["none", "none:None", "shelf:None", "shelf:driver_errors", "broken"])
def test_an_unknown_driver_is_refused(installed: Path, name: str) -> None:
    assert run("driver", "test", name).exit_code == 2


def test_the_kit_in_pytest_works_as_documented(tmp_path: Path) -> None:
    scope: dict[str, object] = {}
    exec(BLOCKS[0], scope)
    exec(BLOCKS[1], scope)
    test = scope["test_it_keeps_its_promises"]
    assert callable(test)
    for says in scope["CHECKS"]:  # type: ignore[attr-defined]
        if "died" not in says:
            test(says, tmp_path)
