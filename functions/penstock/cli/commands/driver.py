"""penstock driver: which drivers there are, and whether one keeps what every driver promises."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_bytes, token_hex
from typing import Any

import click

from penstock.cli.command import Command, Group, Listing, Session, arguments, pass_session
from penstock.cli.errors import Refused
from penstock.cli.output import Column

FAILED = 1
COLUMNS = (
    Column("KIND", "kind"),
    Column("NAME", "name"),
    Column("FROM", "package"),
    Column("CLASS", "where"),
    Column("SAYS", lambda entry: entry["trouble"] or ", ".join(entry["says"]) or None),
)

group = Group("driver", "List the drivers of factories and wells, and test one against the driver contract.")


@group.command("list", cls=Listing)
@pass_session
def list_(session: Session) -> None:
    """List the installed drivers, Penstock's own and those of other packages. Needs no service."""
    from penstock.drivers.installed import installed_drivers

    session.out.table([each.details() for each in installed_drivers()], COLUMNS, "none")


@group.command(
    "test",
    cls=Command,
    epilog="Example: penstock driver test shelf.well:ShelfWell --kind well --settings shelf.toml",
)
@arguments("DRIVER")
@click.option("--kind", type=click.Choice(["well", "factory"]), default="well", help="Kind of driver (default: well).")
@click.option(
    "--settings",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="TOML file with the driver's settings.",
)
@click.option("--type", "type_", default="test", metavar="TYPE", help="Target or resource type to request.")
@click.option("--slot", default="1", metavar="NAME", help="Slot to use; for named resources, one of the names.")
@click.option("--points", default=8, metavar="N", help="Crash points injected per call (default: 8).")
@click.option(
    "--patience", default=120, metavar="N", help="Most polls per step before the suite gives up (default: 120)."
)
@click.option(
    "--lag", default=5.0, metavar="S", help="Seconds until `list` must show what was made or destroyed (default: 5)."
)
@click.option("--nothing-listed", is_flag=True, help="For drivers that create nothing external and do not say so.")
@pass_session
def test(
    session: Session, driver: str, kind: str, settings: Path | None, type_: str, slot: str, points: int, patience: int,
    lag: float, nothing_listed: bool,
) -> int:  # fmt: skip
    """Run the contract test suite against a driver, given by name or as module:Class.

    The suite makes and destroys some dozens of real units with the given settings, so use an account or a service for
    tests. Prints one line for each check, and on a terminal also the one that runs. Where a service lists late, give it
    a longer --lag. Exits with 0 if all checks pass, else with 1.
    """
    from penstock.testing.contract import Rig, report
    from penstock.testing.contract.checks import settings_are_checked

    of, given = _class(driver, kind), _settings(settings)
    with tempfile.TemporaryDirectory(prefix="penstock-") as home:
        make = partial(of, given, _environment(home))
        new = partial(
            Rig, make, kind, type_, slot, is_listed=not (nothing_listed or getattr(of, "makes_nothing", False)),
            points=points, patience=patience, lag=lag, name=partial(_unit, kind),
        )  # fmt: skip
        good = _tell(session, report.asked("its settings are checked", lambda: settings_are_checked(of, given)))
        with _progress(session) as begins:
            found = [good, *(_tell(session, each) for each in report.run(new, begins))]
    if session.json:
        session.out.json([{"check": each.check, "wrong": each.wrong} for each in found])
    wrong = sum(each.wrong is not None for each in found)
    if not session.json:
        session.out.note(f"{len(found)} checks, {wrong} failed", "red" if wrong else "green")
    return FAILED if wrong else 0


@contextmanager
def _progress(session: Session) -> Iterator[Callable[[str], object]]:
    """What shows the check that runs, on a terminal."""
    if not session.out.errors.is_terminal:
        yield lambda says: None
        return
    with session.out.errors.status("") as status:
        yield status.update


def _tell(session: Session, found: Any) -> Any:
    if not session.json:
        session.out.line(f"{'ok    ' if found.wrong is None else 'FAILED'}  {found.check}")
        if found.wrong is not None:
            session.out.line(f"        {found.wrong}")
    return found


def _class(driver: str, kind: str) -> Callable[..., Any]:
    """The class of a driver. Raises Refused."""
    from penstock import drivers
    from penstock.kernel.errors import Misconfigured

    module, _, name = driver.partition(":")
    try:
        if not name:
            found: Any = drivers.load(kind, driver)
            return found  # type: ignore[no-any-return]
        sys.path.insert(0, os.getcwd())
        found = getattr(importlib.import_module(module), name)
    except Misconfigured as error:
        raise Refused(str(error), "give a driver's name, or module:Class") from error
    except (ImportError, AttributeError, ValueError) as error:
        raise Refused(
            f"{driver} cannot be loaded: {error}", "give it as module:Class, from where it can be imported"
        ) from error
    if not callable(getattr(found, "complaints", None)):
        raise Refused(f"{driver} is no driver: it has no `complaints`", "see docs/drivers/writing-a-driver.md")
    return found  # type: ignore[no-any-return]


def _settings(file: Path | None) -> Mapping[str, Any]:
    try:
        given = tomllib.loads(file.read_text()) if file else {}
    except (OSError, ValueError) as error:
        raise Refused(f"can't read {file}: {error}", "give the settings of the driver as TOML") from error
    return {key: value for key, value in given.items() if key not in ("driver", "rate")}


def _environment(home: str) -> Mapping[str, str]:
    """What a function would be told, beside a local cloud; the names are this run's own."""
    from penstock.drivers import MAKER

    return {
        "PENSTOCK_HOME": home,
        "PENSTOCK_SITE": "penstock-driver-test",
        **os.environ,
        MAKER: f"test-{token_hex(4)}",
    }


def _unit(kind: str, number: int) -> str:
    from penstock.kernel import rows as ids

    del number
    return f"{'w' if kind == 'factory' else 'r'}-{ids.ulid(datetime.now(UTC), token_bytes(ids.RANDOM_BYTES))}"
