"""Restores and saves caches. Whatever goes wrong with one is said, and the job goes on without it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .archive import NotPacked, NotUnpacked, pack
from .control import ServiceError
from .fetch import NotFetched, Stopped
from .files import Found, Measured, NotUploaded, measure
from .job import Job
from .keys import NoKey, fill
from .log import duration_text, now, size_text
from .storage import put, put_parts
from .unpack import unpack

TRIES = 4  # how often the service or the store is asked for one answer: some seconds, for work goes on without
ROUNDS = 2  # a fresh URL for what was refused, fresh bytes for those that came wrong
HIT, PARTIAL, MISS = "hit", "partial", "miss"
SAVED, THERE, FAILED = "saved", "there", "failed"


@dataclass(frozen=True)
class Wanted:
    """One cache, as a job file or `bmat` says it. Its paths are seen from the folder `cwd` of the machine."""

    name: str
    paths: list[str]
    key: str
    restore_keys: list[str]
    cwd: str


@dataclass(frozen=True)
class Came:
    """What came of it: one word for scripts, and a line for people."""

    word: str
    text: str


class Trouble(Exception):
    """Why a cache is not restored, or not saved."""


class Caches:
    """The caches of one job."""

    def __init__(self, job: Job, until: float | None = None) -> None:
        self._job, self._until = job, until

    def restore(self, wanted: Wanted) -> Came:
        """Put in place what was kept under the key, or under one that begins like a restore key; never raises for less
        than the end of the work."""
        started = now()
        try:
            ask = self._ask(wanted)
            keys = [self._key(each, wanted.cwd) for each in wanted.restore_keys]
            found, count = self._fetch({**ask, "restore_keys": keys})
        except Trouble as why:
            return Came(MISS, f"cache {wanted.name}: miss: {why}")
        took = f"{count} entries, {size_text(int(found['size']))} in {_since(started)}"
        which = f"{found['id']}, key {found['key']!r}, scope {found['scope']}"
        how = "restored" if found["exact"] else "restored by a restore key"
        return Came(HIT if found["exact"] else PARTIAL, f"cache {wanted.name}: {how} from {which}: {took}")

    def save(self, wanted: Wanted) -> Came:
        """Keep what is there under the key, unless something is kept under it already."""
        started = now()
        try:
            ask = self._ask(wanted)
            there = self._call("find", {**ask, "restore_keys": []})
            if there["hit"]:
                return Came(THERE, f"cache {wanted.name}: {_taken(there)}; nothing was saved")
            word, text = self._save(ask)
        except Trouble as why:
            return Came(FAILED, f"cache {wanted.name}: not saved: {why}")
        return Came(word, f"cache {wanted.name}: {text} in {_since(started)}")

    def _ask(self, wanted: Wanted) -> dict[str, Any]:
        """What the service compares. No secret is part of it. [SEC-1]"""
        paths = [self._in_job(path, wanted.cwd) for path in wanted.paths]
        ask: dict[str, Any] = {
            "name": wanted.name,
            "paths": sorted({each for each in paths if not any(each.startswith(f"{top}/") for top in paths)}),
            "key": self._key(wanted.key, wanted.cwd),
        }
        if "/" in paths:
            raise Trouble("all of the machine cannot be a cache")
        for text in (ask["name"], ask["key"], *ask["paths"]):
            if self._job.mask.text(text) != text:
                raise Trouble("its name, key or paths have a secret of the job's in them")
        return ask

    def _in_job(self, path: str, cwd: str) -> str:
        """A path as the job knows it, wherever its files are on this machine."""
        places = self._job.places
        if path == "~" or path.startswith("~/"):
            path = places.home + path[1:]
        here = os.path.normpath(os.path.join(cwd, path))
        inside = places.private and f"{here}/".startswith(f"{places.root.rstrip('/')}/")
        return places.in_job(here) or "/" if inside else here

    def _key(self, template: str, cwd: str) -> str:
        try:
            return fill(template, lambda path: self._job.places.on_machine(self._in_job(path, cwd)))
        except NoKey as why:
            raise Trouble(str(why)) from why

    def _fetch(self, ask: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """Fetch what is found, and put it in place: whole, and as it was saved, or not at all."""
        with self._folder() as folder:
            path = os.path.join(folder, "archive.tar.gz")
            for last in range(1, ROUNDS + 1):
                found = self._call("find", ask)
                if not found["hit"]:
                    keys = "".join(f", none that begins like {each!r}" for each in ask["restore_keys"])
                    raise Trouble(f"there is nothing with the key {ask['key']!r}{keys}")
                try:
                    told = {**found, "path": f"cache {ask['name']}", "artifact": found["id"]}
                    self._job.copies.fetch(self._job.control, told, path, TRIES)
                    return found, unpack(self._job.places, ask["paths"], path, self._check)
                except NotFetched as why:
                    if last == ROUNDS or not why.stale:
                        raise Trouble(f"{found['id']} could not be fetched: {why}") from why
                except NotUnpacked as why:
                    raise Trouble(f"{found['id']}: {why}") from why
                except (Stopped, ServiceError) as why:
                    raise Trouble(f"{found['id']} was not fetched: the work is stopped") from why
        raise AssertionError("the last round returns or raises")

    def _save(self, ask: dict[str, Any]) -> tuple[str, str]:
        most = self._job.order.limits["cache_bytes"]
        with self._folder() as folder:
            path = os.path.join(folder, "archive.tar.gz")
            try:
                with open(path, "wb") as stream:
                    packed = pack(self._job.places, ask["paths"], stream, most, self._check)
                if not packed.count:
                    raise Trouble(f"none of {', '.join(ask['paths'])} is there")
                about = Found(f"cache {ask['name']}", path, may_change=False)
                file = measure(about, most, self._job.order.limits["part_bytes"])
                told = {"size": file.size, "sha256": file.sha256, "composite": file.composite}
                begun = self._call("save", {**ask, **told})
                if "id" not in begun:
                    raise Trouble(begun["why"])
                if begun["there"]:
                    return THERE, f"{_taken({**begun, 'key': ask['key']})}; nothing was saved"
                self._check()
                self._send(file, begun)
                self._job.copies.keep(begun["id"], path)
            except (NotPacked, NotUploaded, OSError) as why:
                raise Trouble(str(why)) from why
            except ServiceError as why:
                raise Trouble(f"the work is stopped: {why}") from why
        kept = self._call("commit", {**ask, "id": begun["id"]})
        if not kept["kept"]:
            if "why" in kept:
                raise Trouble(kept["why"])
            return THERE, f"{_taken({**kept, 'key': ask['key']})}, saved meanwhile; nothing was overwritten"
        absent = f"; not there: {', '.join(packed.missing)}" if packed.missing else ""
        left = f"; {packed.left_out} devices, pipes and sockets left out" if packed.left_out else ""
        which = f"{begun['id']}, key {ask['key']!r}, scope {kept['scope']}"
        return SAVED, f"saved as {which}: {packed.count} entries, {size_text(file.size)}{absent}{left}"

    def _send(self, file: Measured, begun: dict[str, Any]) -> None:
        """Send an archive, for as long as the work goes on."""
        if not file.parts:
            return put(self._job.control, file, begun, self._check)

        def leave(first: int, digests: Sequence[str]) -> Any:
            return self._call("parts", {"id": begun["id"], "first": first, "sha256": list(digests)})["parts"]

        put_parts(self._job.control, file, begun["part_bytes"], leave, self._check)

    def _check(self) -> None:
        """Raise Trouble when it is no longer worth going on."""
        if self._job.control.stopping:
            raise Trouble("the work is stopped")
        if self._until is not None and now() > self._until:
            raise Trouble("the job's time is over")

    def _call(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._job.service.call(self._job.order.job, f"caches/{what}", body, TRIES)
        except ServiceError as why:
            raise Trouble(f"the service: {why}") from why

    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        tmp = self._job.places.on_machine("/tmp")
        try:
            os.makedirs(tmp, exist_ok=True)
            return tempfile.TemporaryDirectory(prefix="cache-", dir=tmp)
        except OSError as why:
            raise Trouble(f"{tmp} cannot be used: {why}") from why


def _taken(entry: dict[str, Any]) -> str:
    return f"{entry['id']} has the key {entry['key']!r} in the scope {entry['scope']} already"


def _since(started: float) -> str:
    return duration_text(round(now() - started, 2))
