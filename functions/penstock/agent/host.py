"""The loop of a host's agent: say where this host is, do what the service answers, and say that."""

from __future__ import annotations

import signal
import threading
from typing import Any

from . import orphans
from .cleaning import remove
from .client import backoffs
from .control import Refused, ServiceError
from .crew import Crew
from .family import Family
from .log import log
from .office import Office
from .places import Places
from .standing import CLEAN, ENDED, WORKING, Standing

TAKEN = 409
REFUSED_SECONDS = 15.0
STUCK_SECONDS = 30.0


class Host:
    """One host. What it is at is in `standing`; everything else can be lost."""

    def __init__(self, office: Office, standing: Standing, places: Places, program: str) -> None:
        self._office, self._standing, self._places = office, standing, places
        self._wake, self._stopped = threading.Event(), False
        self._crew = Crew(standing, program, office.url, places.root, self._wake.set)
        self._delays, self._trouble, self._told = backoffs(), "", ""

    def serve(self) -> int:
        """Serve until told to terminate. Return the exit code: 1 for a host that is refused, and has no worker."""
        orphans.adopt()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        self._say(f"host {self._office.host}: asking {self._office.url} for work")
        if self._standing.worker and self._standing.stage == WORKING:
            self._crew.start()
        while not self._stopped:
            try:
                self._pause(self._turn())
            except Refused as why:
                if why.status != TAKEN and not self._standing.worker:
                    log(f"the service refuses this host: {why}")
                    return 1
                self._say(f"the service refuses this host for now: {why}")
                self._pause(REFUSED_SECONDS)
            except (ServiceError, OSError) as why:
                self._say(f"host {self._office.host}: {why}")
                self._pause(next(self._delays))
        return self._leave()

    def _turn(self) -> float:
        """Ask, and do what is answered. Return how many seconds nothing is to be done."""
        orphans.bury({self._standing.pid})
        mine = self._standing
        if mine.worker and mine.stage == WORKING and not self._crew.lives():
            mine.note(mine.worker, ENDED)
        reply = self._office.ask(mine.worker, mine.stage, mine.cleaned, self._trouble)
        self._delays = backoffs()
        if reply["do"] == "work":
            return self._work(reply)
        if reply["do"] == "clean":
            return self._clean(reply["worker"])
        if reply["do"] == "forget":
            return self._forget()
        return float(reply["seconds"])

    def _work(self, reply: dict[str, Any]) -> float:
        if not self._standing.worker:
            self._say(f"host {self._office.host}: here is worker {reply['worker']}")
            self._crew.enrol(reply["worker"], reply["key"])
            self._crew.start()
        return float(reply["lease_seconds"]) / 4

    def _clean(self, worker: str) -> float:
        """Remove what a worker left. What cannot be removed is told, and tried again: it may be mended by hand."""
        self._crew.end()
        self._standing.note(worker, ENDED)
        try:
            cleaned = remove(Family(worker), self._places, str(self._standing.folder), f"worker {worker}")
        except OSError as why:
            self._trouble = str(why)
            self._say(f"host {self._office.host} cannot get clean: {why}")
            return STUCK_SECONDS
        self._trouble = ""
        self._standing.note(worker, CLEAN, cleaned)
        self._say(f"host {self._office.host} is clean after worker {worker}")
        return 0.0

    def _forget(self) -> float:
        """The worker is not this host's any more. It is not free itself before it is clean. [UNIT-2]"""
        if self._standing.stage != CLEAN:
            pause = self._clean(self._standing.worker)
            if pause:
                return pause
        self._standing.forget()
        return 0.0

    def _leave(self) -> int:
        """End the worker's agent, and tell the service what it can: it goes on at once elsewhere."""
        self._say(f"host {self._office.host}: leaving")
        mine = self._standing
        try:
            if mine.worker and mine.stage == WORKING:
                self._crew.end()
                mine.note(mine.worker, ENDED)
            self._office.ask(mine.worker, mine.stage, mine.cleaned, leaving=True)
        except (ServiceError, OSError) as why:
            log(f"host {self._office.host}: {why}")
        return 0

    def _pause(self, seconds: float) -> None:
        """Do nothing for a while, or until the worker's agent ends, or this one is told to."""
        if seconds > 0:
            self._wake.wait(seconds)
        self._wake.clear()

    def _stop(self, number: int, frame: Any) -> None:
        self._stopped = True
        threading.Thread(target=self._wake.set, daemon=True).start()

    def _say(self, text: str) -> None:
        """Log what is news."""
        if text != self._told:
            log(text)
        self._told = text
