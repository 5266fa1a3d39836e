"""penstock factory test.

One test of a factory, watched until nothing is left of its machine, or what is left is said.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from rich.status import Status
from rich.text import Text

from penstock.cli import times
from penstock.cli.client import Patience
from penstock.cli.command import Command, Session, arguments, duration, pass_session
from penstock.cli.errors import CliError, Interrupted, Refused
from penstock.cli.terminal import clean

FAILED = 1


@click.command(cls=Command, epilog="Example: penstock factory test aws --all --keep-on-failure 1h")
@arguments("NAME")
@click.option(
    "-t", "--target", metavar="TARGET", help="Target to test (default: the factory's first target with a limit)."
)
@click.option("--all", "every", is_flag=True, help="Test all targets of the factory, one after the other.")
@click.option(
    "--timeout", type=duration, default="20m", metavar="D", help="Longest time for one target (default: 20m)."
)
@click.option(
    "--keep-on-failure", "keep", type=duration, metavar="D", help="If a check fails, hold the worker for this long."
)
@pass_session
def test(session: Session, name: str, target: str | None, every: bool, timeout: int, keep: int | None) -> int:
    """Test a factory: make one worker, run a job on it, destroy it, and verify that it is gone.

    Prints one line for each check, with its duration. Exits with 0 if all checks pass, else with 1. Ctrl-C cancels the
    test and waits until its worker is gone. Operators only.
    """
    if target and every:
        raise click.UsageError("--target and --all exclude each other")
    good, found = True, list[Any]()
    for each in _targets(session, name) if every else [target]:
        good &= _prove(session, name, each, timeout, keep, found, every=every)
    if session.json:
        session.out.json(found)
    return 0 if good else FAILED


def _targets(session: Session, name: str) -> Iterator[str | None]:
    """The factory's targets; None if it has none, so that the service explains the error."""
    names = [entry["name"] for entry in session.api.items("targets") if entry["settings"].get("factory") == name]
    yield from names or [None]


def _prove(
    session: Session, name: str, target: str | None, timeout: int, keep: int | None, found: list[Any], *, every: bool
) -> bool:
    """One test. If it is one of several, a refusal does not stop the others."""
    pass

    prover = Prover(session, name, target, timeout, keep)
    try:
        return prover.run()
    except Refused as refused:
        if not (every and target):
            raise
        prover.refused(refused.what)
        return False
    finally:
        found += prover.found


EACH = 1.0
"""Seconds between two looks."""

LEAVING = 600.0
"""How many seconds to wait until the machine of a cancelled test is gone."""

PATIENCE = 30.0
"""How many seconds to wait for an unreachable service."""

LAST = ("destroyed", "not listed any more")
"""The checks that a hold keeps open."""

Page = Mapping[str, Any]


Found = dict[str, Any]


@dataclass
class Prover:
    """Starts a test and follows it. `found` holds its checks in the order of their results."""

    session: Session
    factory: str
    target: str | None
    timeout: int
    keep: int | None
    found: list[Found] = field(default_factory=list)
    page: Page = field(default_factory=dict)

    def run(self) -> bool:
        """Whether all is well. Raises Interrupted after Ctrl-C, when the machine is gone or what is left is said."""
        api = self.session.api
        patience = replace(Patience(), connect=PATIENCE, reply=PATIENCE)
        api.transport.patience, api.transport.notice = patience, self.session.out.notice
        body = {"target": self.target, "keep_on_failure": self.keep}
        sent = {name: value for name, value in body.items() if value is not None}
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        begun = api.make("factories", self.factory, "test", body=sent, headers=headers)
        self.target, self._job = str(begun["target"]), str(begun["id"])
        self.session.out.note(f"factory {self.factory}, target {self.target}: job {self._job}")
        for wait in begun["waits"]:
            self.session.out.notice(f"it will wait: {wait}")
        try:
            is_kept = self._follow()
        except KeyboardInterrupt:
            raise self._interrupted() from None
        return self._conclude(is_kept=is_kept)

    def _follow(self) -> bool:
        """Continue until nothing is left; True if a check failed and the machine is held."""
        if not self._watch(self.timeout):
            self._add("in time", False, f"it was not over after {times.duration(self.timeout)}: {self.page['waits']}")
            self._cancel()
            self._watch(LEAVING)
        if self._is_parked() and self._is("ordered") and not self._is_good():
            self._hold()
            return True
        if self._is_parked():
            self._release()
            self._watch(LEAVING)
        return False

    def _watch(self, seconds: float) -> bool:
        """Poll until the test ends, or only its hold is left; False on timeout."""
        end = time.monotonic() + seconds
        errors = self.session.out.errors
        with errors.status("begins") if errors.is_terminal else contextlib.nullcontext() as status:
            while True:
                if status:  # it would share its line with the results
                    status.stop()
                self._look()
                if self.page["over"] or self._is_parked():
                    return True
                if time.monotonic() >= end:
                    return False
                self._wait(status)

    def _wait(self, status: Status | None) -> None:
        if status:
            status.update(Text(clean(self._next())))
            status.start()
        elif self.page["waits"]:
            self.session.out.notice(self.page["waits"])
        time.sleep(EACH)

    def _look(self) -> None:
        self.page = self.session.api.get("factories", self.factory, "tests", self._job)
        for check in self.page["checks"]:
            if check["ok"] is not None and not any(check["check"] == one["check"] for one in self.found):
                self._found(check)

    def _next(self) -> str:
        pending = next((one for one in self.page["checks"] if one["ok"] is None), {"check": "the end", "detail": ""})
        why = str(pending["detail"] or self.page["waits"] or "").partition("\n")[0]
        return f"{pending['check']} …{f' {why}' if why else ''}"

    def _found(self, check: Found) -> None:
        self.found.append({"target": self.target, **check})
        if self.session.json:
            return
        mark, style = {True: ("✓", "green"), False: ("✗", "red")}.get(check["ok"], ("-", "dim"))
        took = "" if check["seconds"] is None else f" ({times.duration(check['seconds'])})"
        first, *rest = clean(str(check["detail"]), keep="\n").split("\n")
        self.session.out.line(f"{mark} {check['check']}{took}{f': {first}' if first else ''}", style)
        for line in rest:
            self.session.out.line(f"    {line}")

    def _add(self, check: str, ok: bool | None, detail: str, seconds: float | None = None) -> None:
        self._found({"check": check, "ok": ok, "detail": detail, "seconds": seconds})

    def refused(self, why: str) -> None:
        """That the test could not begin."""
        self._add("begun", False, f"target {self.target}: {why}")

    def _is_parked(self) -> bool:
        """Whether its machine is held, and nothing more happens by itself."""
        return bool(self.page["held_until"]) and self.page["state"] == "settled" and not self.page["over"]

    def _is(self, check: str) -> bool:
        return any(one["check"] == check and one["ok"] for one in self.found)

    def _is_good(self) -> bool:
        """Whether all was well up to the end of the machine."""
        is_done = all(one["ok"] for one in self.page["checks"] if one["check"] not in LAST)
        return is_done and all(one["ok"] for one in self.found)

    def _cancel(self) -> None:
        self.session.out.note(f"job {self._job} is cancelled; waiting until its machine is gone")
        with contextlib.suppress(Refused):  # it is settled already
            self.session.api.act("jobs", self._job, "cancel")

    def _release(self) -> None:
        with contextlib.suppress(Refused):  # its hold has run out
            self.session.api.act("workers", str(self.page["worker"]), "release")

    def _hold(self) -> None:
        """Hold the machine for the requested time, and print how to inspect it."""
        worker = str(self.page["worker"])
        failed = next((one["check"] for one in self.found if not one["ok"]), "a check that was not reached")
        reason = f"a test of factory {self.factory} failed: {failed}"
        held = self.session.api.act("workers", worker, "hold", body={"reason": reason, "for": self.keep})
        until = (held.get("hold") or {}).get("until")
        self._add("kept", None, f"worker {worker} is held until {until}; `penstock worker release {worker}` lets it go")

    def _conclude(self, *, is_kept: bool) -> bool:
        if not is_kept and self._is("output came back"):
            self._download()
        known = {one["check"] for one in self.found}
        for check in self.page["checks"]:
            if check["check"] not in known:
                self._found({**check, "detail": check["detail"] or "not reached"})
        if not (is_kept or self.page["over"]):
            self.session.out.notice(self._left())
        return bool(self.page["passed"]) and all(one["ok"] for one in self.found)

    def _download(self) -> None:
        """Download the output as a user would: the service itself knows only its announced size and checksum."""
        from penstock.cli.transfer import fetch

        def sign() -> str:
            return str(self.session.api.sign(self._job, output["id"])["url"])

        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                output = self.session.api.output(self._job, "/work/penstock-test.txt")
                fetch(self.session.api, sign, output, Path(folder, "it"), lambda _: None)
            except CliError as error:
                self._add("output downloaded", False, error.what)
            else:
                self._add("output downloaded", True, f"{output['size']} bytes", time.monotonic() - start)

    def _left(self) -> str:
        """What is left of a test that is not over, and how to look at it."""
        worker = self.page["worker"]
        if not worker:
            return f"job {self._job} is still {self.page['state']}: `penstock job why {self._job}`"
        return f"worker {worker} is not gone yet; it will be destroyed all the same: `penstock worker show {worker}`"

    def _interrupted(self) -> Interrupted:
        """After Ctrl-C: cancel, and wait until the machine is gone; a second Ctrl-C stops waiting."""
        try:
            self._cancel()
            self._look()
            if self.page["held_until"]:
                self._release()
            self._watch(LEAVING)
        except KeyboardInterrupt:
            pass
        gone = self.page.get("over")
        return Interrupted(f"stopped; {'nothing of it is left' if gone else self._left()}")
