"""Fetches the job's inputs before its script starts: outputs of other jobs, and files that its user uploaded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .diagnosis import full_disk_error
from .downloads import NotFetched, Stopped
from .job import Failure, Job, Outcome
from .joblog import DETAIL
from .machine import size_text

PARALLEL_DOWNLOADS = 4
ROUNDS = 3  # tries for a page of inputs: with fresh URLs, for one may have expired


class Inputs:
    """The inputs of a job. The service lists them page by page: there may be thousands."""

    def __init__(self, job: Job) -> None:
        self._job, self._count, self._bytes = job, 0, 0
        self._copied: list[str] = []
        self._failure: Failure | None = None

    def fetch(self) -> Outcome | None:
        """Fetch every input. Return the job's outcome if that failed. Raises ServiceError."""
        self._say("fetching inputs", DETAIL)
        try:
            after: str | None = ""
            while after is not None:
                after = self._page(after)
        except Stopped:
            return self._stopped()
        except NotFetched as why:
            return Outcome("unprepared", str(why), failure=self._failure)
        here = f"; {len(self._copied)} of them from this machine's copies" if self._copied else ""
        self._say(f"fetched {self._count} input(s), {size_text(self._bytes)}{here}", DETAIL)
        return None

    def _page(self, after: str) -> str | None:
        """Fetch a page of inputs; retry failed ones with fresh URLs. Return where the next page starts."""
        failed: dict[str, NotFetched] = {}
        for round in range(ROUNDS):
            page = self._job.call("inputs", {"after": after})
            wanted = [source for source in page["inputs"] if not round or source["path"] in failed]
            failed = self._fetch(wanted)
            for path, why in failed.items():
                self._say(f"the input {path} could not be fetched: {why}")
            if not failed or not all(why.stale for why in failed.values()):
                break
        for path, why in failed.items():
            sizes = {source["path"]: int(source["size"]) for source in page["inputs"]}
            self._failure = input_failure(path, sizes[path], why)
            raise NotFetched(f"the input {path} could not be fetched: {why}")
        self._count += len(page["inputs"])
        self._bytes += sum(int(source["size"]) for source in page["inputs"])
        following: str | None = page.get("next")
        return following

    def _fetch(self, wanted: list[dict[str, Any]]) -> dict[str, NotFetched]:
        with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
            found = list(pool.map(self._fetch_one, wanted))
        return {source["path"]: why for source, why in zip(wanted, found) if why}

    def _fetch_one(self, source: dict[str, Any]) -> NotFetched | None:
        machine, path = self._job.machine, str(source["path"])
        where = machine.real_path(path)
        if not where.startswith(machine.real_path("/input") + "/"):
            return NotFetched("its path leads out of /input")
        if self._job.control.stopping:
            self._job.control.check()
            raise Stopped
        try:
            if self._job.fetch(source, where):
                self._copied.append(path)
        except NotFetched as why:
            return why
        return None

    def _stopped(self) -> Outcome:
        self._job.control.check()
        first = self._job.order.tasks[0].index if self._job.order.tasks else 0
        return self._job.stopped(first, "its inputs were still being fetched")

    def _say(self, text: str, stream: str = "worker") -> None:
        self._job.outbox.put(stream, None, text)


def input_failure(path: str, size: int, why: NotFetched) -> Failure:
    """Return why an input of `size` bytes could not be fetched."""
    known = {"path": path, "error": str(why)}
    full = full_disk_error(why)
    if full:
        return Failure("disk_full", {**full, "path": path})
    if why.received is not None:
        return Failure("input_truncated", {**known, "size_bytes": size, "found_bytes": why.received})
    return Failure("input_failed", known)
