"""Leases without a job, for Python programs and for the command line.

    import penstock

    with penstock.lease("bench", for_="10m") as bench:
        flash(bench.resources["bench"]["address"])

The lease is renewed as long as the block runs, and released whatever ends it. If this process dies, it ends by itself
after `for_`.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from penstock.cli import config, times
from penstock.cli.client import Api, Transport
from penstock.cli.errors import CliError, Refused

LENGTH = "10m"
"""For how long a lease is asked for that is renewed: so long is it kept for nobody if its program dies."""

FIRST_PAUSE, LONGEST_PAUSE = 0.3, 5.0
"""Seconds between two looks at a lease that waits; each pause is half as long again as the one before."""

RENEWALS = 3
"""How often a lease is renewed in the time for which it is asked for: one renewal may be lost."""

MARGIN = 0.1
"""The last part of that time in which a lease that was not renewed counts as lost: its holder stops before others have
what it had.
"""


class LeaseEnded(CliError):
    """The lease has ended before its holder released it, or it never got what it asked for."""

    exit_code = 4
    code = "lease-ended"


class Lease:
    """A lease. `lost` is set while it is kept, if it has ended or may end before it can be renewed.

    `asked`: when it was asked for, by the monotonic clock; by default now.
    """

    def __init__(self, api: Api, id: str, asked: float | None = None) -> None:
        self.api, self.id = api, id
        self.lost: threading.Event = threading.Event()
        self.why_lost = ""
        self._done = threading.Event()
        self._since = time.monotonic() if asked is None else asked
        self._ends = 0.0
        self._values: dict[str, dict[str, Any]] | None = None

    def view(self) -> dict[str, Any]:
        """The lease as it is now."""
        return dict(self.api.get("leases", self.id))

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        """What the lease has: addresses, credentials and so on, by its name in the lease. Read once."""
        if self._values is None:
            self._values = self.read()
        return self._values

    def read(self) -> dict[str, dict[str, Any]]:
        """The same, as it is now: some credentials are renewed. Raises Refused while it is not held."""
        found = self.api.act("agent", "leases", self.id, "resources")["resources"]
        return {name: dict(each["metadata"]) for name, each in found.items()}

    def wait(self, told: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
        """Wait until the lease is held, and return it; `told` gets why it waits. Raises LeaseEnded."""
        pause, asked = FIRST_PAUSE, time.monotonic()
        while (found := self.view())["state"] == "waiting":
            self._since = asked
            told(found["why"] or "it waits")
            time.sleep(pause)
            pause, asked = min(LONGEST_PAUSE, 1.5 * pause), time.monotonic()
        if found["state"] == "ended":
            raise LeaseEnded(f"lease {self.id} has ended: {found['outcome']}: {found['reason']}")
        return found

    def renew(self, length: str | int) -> dict[str, Any]:
        """Have it end that long from now, unless it ends later anyway. Raises Refused."""
        return dict(self.api.act("leases", self.id, "renew", body={"for": length}))

    def release(self) -> dict[str, Any]:
        """Give back what it has, or stop waiting. Safe to repeat."""
        self._done.set()
        return dict(self.api.act("leases", self.id, "release"))

    def keep(self, length: str | int, seconds: float) -> None:
        """Renew it in the background, now and then, until it is released or lost. `seconds` is that length.

        When its time began, only the service knows: at the earliest when it was last seen waiting, or was asked for.
        """
        self._ends = self._since + seconds * (1 - MARGIN)
        for work in (lambda: self._renew_often(length, seconds), self._watch):
            threading.Thread(target=work, daemon=True).start()

    def _renew_often(self, length: str | int, seconds: float) -> None:
        """Renew it, and try again what fails. Its time counts from the request, not from the answer."""
        pause = self._since + seconds / RENEWALS - time.monotonic()
        while not self._done.wait(max(0.0, pause)) and not self.lost.is_set():
            pause, asked = seconds / RENEWALS, time.monotonic()
            try:
                self.renew(length)
                self._ends = asked + seconds * (1 - MARGIN)
            except Refused as refused:
                if refused.code == "lease-ended":
                    self._lose(refused.what)
            except CliError:
                pass

    def _watch(self) -> None:
        """Give it up in time, however long a renewal takes that gets no answer."""
        while not self._done.wait(max(0.0, self._ends - time.monotonic())):
            if time.monotonic() >= self._ends:
                self._lose(f"lease {self.id} could not be renewed in time")
                return

    def _lose(self, why: str) -> None:
        """A renewal that is under way while the lease is released finds it ended: that is no loss."""
        if not self._done.is_set():
            self.why_lost = self.why_lost or why
            self.lost.set()


def acquire(api: Api, body: Mapping[str, object]) -> Lease:
    """Ask for a lease. Raises Refused."""
    asked = time.monotonic()
    answer = api.make("leases", body=body, headers={"Idempotency-Key": str(uuid.uuid4())})
    return Lease(api, str(answer["id"]), asked)


@contextmanager
def lease(
    *types: str,
    for_: str | int = LENGTH,
    max_wait: str | int | None = None,
    name: str | None = None,
    resources: Sequence[str] | Mapping[str, Mapping[str, Any]] | None = None,
    url: str | None = None,
    token: str | None = None,
    profile: str | None = None,
) -> Iterator[Lease]:
    """Have resources of these types while a block runs; or `resources`, as job files ask for them.

    Waits until all are there. Where the service is, and the token, come from the arguments, PENSTOCK_URL and
    PENSTOCK_TOKEN, or the configuration file, as for the command. Raises CliError, such as Refused or LeaseEnded.
    """
    loaded = config.load(config.path(os.environ))
    target = config.resolve(loaded, os.environ, url=url, token=token, profile=profile)
    api = Api(Transport(target.url, target.token, lambda text: None))
    said = {"resources": resources or list(types), "for": for_, "max_wait": max_wait, "name": name}
    with held(acquire(api, {key: value for key, value in said.items() if value is not None}), for_) as found:
        yield found


@contextmanager
def held(found: Lease, length: str | int, told: Callable[[str], None] = lambda text: None) -> Iterator[Lease]:
    """Wait for a lease, and keep it while a block runs. It is released whatever ends the block, or the waiting."""
    try:
        view = found.wait(told)
        found.keep(length, (times.parse(view["until"]) - times.parse(view["since"])).total_seconds())
        yield found
    finally:
        found.release()
