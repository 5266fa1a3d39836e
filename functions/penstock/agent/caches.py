"""Restores and saves caches. Trouble with a cache is logged, and the job goes on without it."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .archive import Bounds, NotPacked, NotUnpacked, pack, unpack
from .client import ServiceError
from .downloads import NotFetched, Stopped
from .job import Job
from .machine import duration_text, now, size_text
from .uploads import File, MeasuredFile, NotUploaded, measure_file, upload_file, upload_parts

PLACEHOLDER = re.compile(r'\{\{\s*hash((?:\s+"[^"{}]+")+)\s*\}\}')
QUOTED = re.compile(r'"([^"]+)"')
CHUNK = 1 << 18
TRIES = 4  # per call or download: only some seconds, because the job can continue without the cache
ROUNDS = 2  # downloads of one archive: the second with a fresh URL
HIT, PARTIAL, MISS = "hit", "partial", "miss"
SAVED, THERE, FAILED = "saved", "there", "failed"


class BadKey(Exception):
    """Why a key cannot be computed."""


def fill_key(template: str, located: Callable[[str], str]) -> str:
    """Return a key with its placeholders filled in. `located` returns where a path is. Raises BadKey."""
    filled = PLACEHOLDER.sub(lambda found: _digest_files(QUOTED.findall(found[1]), located), template)
    if "{{" in filled or "}}" in filled:
        raise BadKey(f'{template!r} has an unknown placeholder; the only one is {{{{ hash "FILE" }}}}')
    return filled


def _digest_files(patterns: list[str], located: Callable[[str], str]) -> str:
    """Return one digest over the names and contents of all files that match the patterns. Raises BadKey."""
    whole = hashlib.sha256()
    for pattern in patterns:
        place = located(pattern)
        paths = sorted(path for path in glob.glob(place, recursive=True) if os.path.isfile(path))
        if not paths:
            raise BadKey(f"there is no file {pattern!r} to hash")
        for path in paths:
            name = os.fsencode(os.path.relpath(path, _fixed_folder(place)))
            whole.update(len(name).to_bytes(8, "big") + name + _digest_content(path))
    return whole.hexdigest()


def _fixed_folder(pattern: str) -> str:
    """Return the folder above the first wildcard of a pattern. It is not part of the files' names."""
    return os.path.dirname(re.split(r"[*?\[]", pattern, maxsplit=1)[0])


def _digest_content(path: str) -> bytes:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            for chunk in iter(lambda: file.read(CHUNK), b""):
                digest.update(chunk)
    except OSError as why:
        raise BadKey(f"{path} cannot be read: {why}") from why
    return digest.digest()


@dataclass(frozen=True)
class CacheRequest:
    """One cache, as a job file or `bmat` names it. Its paths are relative to `cwd`, a folder of the machine."""

    name: str
    paths: list[str]
    key: str
    restore_keys: list[str]
    cwd: str


@dataclass(frozen=True)
class CacheResult:
    """The result: a word for scripts, and a line for people."""

    word: str
    text: str


class CacheTrouble(Exception):
    """Why a cache is not restored, or not saved."""


class Caches:
    """The caches of one job. `is_bounded`: they are of no use once the job's time is over."""

    def __init__(self, job: Job, *, is_bounded: bool = False) -> None:
        self._job, self._is_bounded = job, is_bounded

    def restore(self, wanted: CacheRequest) -> CacheResult:
        """Restore the entry with the key, or the newest whose key starts with a restore key."""
        started = now()
        try:
            ask = self._ask(wanted)
            keys = [self._key(each, wanted.cwd) for each in wanted.restore_keys]
            found, count = self._fetch({**ask, "restore_keys": keys})
        except CacheTrouble as why:
            return CacheResult(MISS, f"cache {wanted.name}: miss: {why}")
        took = f"{count} entries, {size_text(int(found['size']))} in {_elapsed(started)}"
        which = f"{found['id']}, key {found['key']!r}, scope {found['scope']}"
        how = "restored" if found["exact"] else "restored by a restore key"
        return CacheResult(HIT if found["exact"] else PARTIAL, f"cache {wanted.name}: {how} from {which}: {took}")

    def save(self, wanted: CacheRequest) -> CacheResult:
        """Save the paths under the key, unless the key has an entry already. Trouble is in the result."""
        started = now()
        try:
            ask = self._ask(wanted)
            there = self._call("find", {**ask, "restore_keys": []})
            if there["hit"]:
                return CacheResult(THERE, f"cache {wanted.name}: {_taken_text(there)}; nothing was saved")
            word, text = self._save(ask)
        except CacheTrouble as why:
            return CacheResult(FAILED, f"cache {wanted.name}: not saved: {why}")
        return CacheResult(word, f"cache {wanted.name}: {text} in {_elapsed(started)}")

    def _ask(self, wanted: CacheRequest) -> dict[str, Any]:
        """Return what the service compares. It contains no secret. [SEC-1]"""
        paths = [self._in_job(path, wanted.cwd) for path in wanted.paths]
        ask: dict[str, Any] = {
            "name": wanted.name,
            "paths": sorted({each for each in paths if not any(each.startswith(f"{top}/") for top in paths)}),
            "key": self._key(wanted.key, wanted.cwd),
        }
        if "/" in paths:
            raise CacheTrouble("the whole machine cannot be a cache")
        for text in (ask["name"], ask["key"], *ask["paths"]):
            if self._job.mask.text(text) != text:
                raise CacheTrouble("its name, key or paths contain a secret of the job")
        return ask

    def _in_job(self, path: str, cwd: str) -> str:
        """Return a path as the job knows it, wherever its files are on this machine."""
        machine = self._job.machine
        if path == "~" or path.startswith("~/"):
            path = machine.home + path[1:]
        here = os.path.normpath(os.path.join(cwd, path))
        inside = machine.private and f"{here}/".startswith(f"{machine.root.rstrip('/')}/")
        return machine.job_path(here) or "/" if inside else here

    def _key(self, template: str, cwd: str) -> str:
        try:
            with self._job.machine.acting():
                return fill_key(template, lambda path: self._job.machine.real_path(self._in_job(path, cwd)))
        except BadKey as why:
            raise CacheTrouble(str(why)) from why

    def _fetch(self, ask: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """Download the entry that matches, and put it in place, whole or not at all."""
        with self._folder() as folder:
            path = os.path.join(folder, "archive.tar.gz")
            for last in range(1, ROUNDS + 1):
                found = self._call("find", ask)
                if not found["hit"]:
                    keys = "".join(f", and none that starts with {each!r}" for each in ask["restore_keys"])
                    raise CacheTrouble(f"there is no entry with the key {ask['key']!r}{keys}")
                try:
                    source = {**found, "path": f"cache {ask['name']}", "artifact": found["id"]}
                    self._job.fetch(source, path, TRIES)
                    return found, self._unpack(ask["paths"], path)
                except NotFetched as why:
                    if last == ROUNDS or not why.stale:
                        raise CacheTrouble(f"{found['id']} could not be fetched: {why}") from why
                except NotUnpacked as why:
                    raise CacheTrouble(f"{found['id']}: {why}") from why
                except (Stopped, ServiceError) as why:
                    raise CacheTrouble(f"{found['id']} was not fetched: the work is stopped") from why
        raise AssertionError("the last round returns or raises")

    def _unpack(self, paths: list[str], archive: str) -> int:
        return unpack(self._job.machine, paths, archive, self._check, self._bounds())

    def _bounds(self) -> Bounds:
        return Bounds.of(self._job.order.limits)

    def _save(self, ask: dict[str, Any]) -> tuple[str, str]:
        most = self._job.order.limits["cache_bytes"]
        with self._folder() as folder:
            path = os.path.join(folder, "archive.tar.gz")
            try:
                with open(path, "wb") as stream:
                    packed = pack(self._job.machine, ask["paths"], stream, most, self._check, self._bounds())
                if not packed.count:
                    raise CacheTrouble(f"none of {', '.join(ask['paths'])} exists")
                about = File(f"cache {ask['name']}", path, may_change=False)
                file = measure_file(about, most, self._job.order.limits["part_bytes"])
                measured = {"size": file.size, "sha256": file.sha256, "composite": file.composite}
                begun = self._call("save", {**ask, **measured})
                if "id" not in begun:
                    raise CacheTrouble(begun["why"])
                if begun["there"]:
                    return THERE, f"{_taken_text({**begun, 'key': ask['key']})}; nothing was saved"
                self._check()
                self._send(file, begun)
                if self._job.copies:
                    self._job.copies.keep(begun["id"], path)
            except (NotPacked, NotUploaded, OSError) as why:
                raise CacheTrouble(str(why)) from why
            except ServiceError as why:
                raise CacheTrouble(f"the work is stopped: {why}") from why
        kept = self._call("commit", {**ask, "id": begun["id"]})
        if not kept["kept"]:
            if "why" in kept:
                raise CacheTrouble(kept["why"])
            return THERE, f"{_taken_text({**kept, 'key': ask['key']})}, saved meanwhile; nothing was overwritten"
        absent = f"; missing: {', '.join(packed.missing)}" if packed.missing else ""
        left = f"; {packed.left_out} devices, pipes and sockets left out" if packed.left_out else ""
        which = f"{begun['id']}, key {ask['key']!r}, scope {kept['scope']}"
        return SAVED, f"saved as {which}: {packed.count} entries, {size_text(file.size)}{absent}{left}"

    def _send(self, file: MeasuredFile, begun: dict[str, Any]) -> None:
        """Upload an archive while the work goes on."""
        if not file.parts:
            return upload_file(self._job.control, file, begun, self._check)

        def ask_parts(first: int, digests: Sequence[str]) -> Any:
            return self._call("parts", {"id": begun["id"], "first": first, "sha256": list(digests)})["parts"]

        upload_parts(self._job.control, file, begun["part_bytes"], ask_parts, self._check)

    def _check(self) -> None:
        """Raise CacheTrouble when the work is stopped or the job's time is over."""
        if self._job.control.stopping:
            raise CacheTrouble("the work is stopped")
        if self._is_bounded and self._job.control.is_late:
            raise CacheTrouble("the job's time is over")

    def _call(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._job.service.call(self._job.order.job, f"caches/{what}", body, TRIES)
        except ServiceError as why:
            raise CacheTrouble(f"the service: {why}") from why

    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        """Return a folder for an archive. A confined job cannot change what the agent has there. [SEC-2]"""
        machine = self._job.machine
        tmp = str(self._job.config.folder) if machine.is_confined else machine.real_path("/tmp")
        try:
            os.makedirs(tmp, exist_ok=True)
            return tempfile.TemporaryDirectory(prefix="cache-", dir=tmp)
        except OSError as why:
            raise CacheTrouble(f"{tmp} cannot be used: {why}") from why


def _taken_text(entry: dict[str, Any]) -> str:
    return f"{entry['id']} has the key {entry['key']!r} in the scope {entry['scope']} already"


def _elapsed(started: float) -> str:
    return duration_text(round(now() - started, 2))


class JobCaches:
    """The caches that the job file names: restored before the first task, saved when the job has succeeded."""

    def __init__(self, job: Job) -> None:
        self._job, self._caches = job, Caches(job, is_bounded=True)
        work = job.machine.real_path("/work")
        self._all = [
            CacheRequest(cache["name"], list(cache["paths"]), cache["key"], list(cache["restore_keys"]), work)
            for cache in job.order.reply["caches"]
        ]
        self._hits: set[str] = set()

    def restore(self) -> None:
        """Restore each cache, unless the work is stopped."""
        for wanted in self._all:
            if self._job.control.stopping:
                return
            found = self._caches.restore(wanted)
            self._say(found.text)
            if found.word == HIT:
                self._hits.add(wanted.name)

    def save(self) -> None:
        """Save each cache whose key had no entry when the job began."""
        for wanted in self._all:
            if wanted.name not in self._hits and not self._job.control.stopping:
                self._say(self._caches.save(wanted).text)

    def _say(self, text: str) -> None:
        self._job.outbox.put("worker", None, text)
