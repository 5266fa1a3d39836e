"""Uploads what the output rules name, one file at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .control import Refused
from .faults import Fault, Faults
from .files import Found, Measured, NotUploaded, measure
from .job import Job
from .log import size_text
from .outcome import Failure
from .selection import match, select
from .storage import put, put_parts, side_by_side

ROUNDS = 3  # a fresh URL for what was refused (it may have expired), a fresh hash for what has changed
BATCH = 50

Problems = dict[Found, NotUploaded]


class Uploads:
    """The outputs of a job."""

    def __init__(self, job: Job) -> None:
        self._job, self._faults = job, Faults(job.outbox)
        self._uploaded: set[Found] = set()

    def run(self) -> Fault | None:
        """Upload. Return why the outputs are not what the rules ask for, or None. Raises ServiceError."""
        matches = match(self._job, self._faults)
        files = select(matches, self._job.order.limits["outputs"], self._job.mask, self._faults)
        for start in range(0, len(files), BATCH):
            self._upload(files[start : start + BATCH])
        for rule, found in matches.items():
            if rule.required and self._uploaded.isdisjoint(found):
                why = f'no file was uploaded for output rule "{rule.text}", which requires one'
                self._faults.fail(why, Failure("output_missing", {"rule": rule.text}))
        return self._faults.first

    def _upload(self, files: list[Found]) -> None:
        """Upload a batch; what could not be stored is tried again, unless it is its own fault."""
        for _ in range(ROUNDS):
            problems = self._send(self._measure(files))
            for file, why in problems.items():
                if why.moving and not file.may_change:
                    self._faults.blame(file, why)
            files = [file for file, why in problems.items() if file.may_change or not why.moving]
        for file in files:
            self._faults.blame(file, problems[file])

    def _measure(self, files: list[Found]) -> list[Measured]:
        """Read all files; those that can't be uploaded are reported and left out."""
        measured, bounds = [], self._job.order.limits
        for file in files:
            try:
                measured.append(measure(file, bounds["output_bytes"], bounds["part_bytes"]))
            except NotUploaded as why:
                self._faults.blame(file, why)
        return measured

    def _send(self, files: list[Measured]) -> Problems:
        """Upload a batch and commit what was stored. Return what was wrong with the others."""
        if not files:
            return {}
        about = [
            {"path": f.file.name, "size": f.size, "sha256": f.sha256, "composite": f.composite} for f in files
        ]  # fmt: skip
        try:
            uploads = {upload["path"]: upload for upload in self._job.call("outputs", {"files": about})["uploads"]}
        except Refused as why:
            if len(files) == 1:
                return {files[0].file: NotUploaded(f"the service refused it: {why}")}
            return {name: problem for file in files for name, problem in self._send([file]).items()}
        return self._store(files, uploads)

    def _store(self, files: list[Measured], uploads: dict[str, Any]) -> Problems:
        """Send the bytes of a batch, then have the service look at what has arrived."""
        small, big = [f for f in files if not f.parts], [f for f in files if f.parts]
        failed = side_by_side(lambda file: self._put(file, uploads[file.file.name]), small)
        for file in big:  # one after the other: its parts are sent side by side
            failed.update(side_by_side(lambda file: self._put_parts(file, uploads[file.file.name]), [file]))
        problems = {file.file: why for file, why in failed.items()}
        stored = {f.file: uploads[f.file.name]["id"] for f in files if f.file not in problems}
        return {**problems, **self._commit(stored)}

    def _put(self, file: Measured, upload: dict[str, Any]) -> None:
        self._faults.say(f"uploading {file.file.name} ({size_text(file.size)})")
        put(self._job.control, file, upload)

    def _put_parts(self, file: Measured, upload: dict[str, Any]) -> None:
        self._faults.say(f"uploading {file.file.name} ({size_text(file.size)}, in {len(file.parts)} parts)")

        def ask(first: int, digests: Sequence[str]) -> Any:
            body = {"id": upload["id"], "first": first, "sha256": list(digests)}
            return self._job.call("outputs/parts", body)["parts"]

        try:
            put_parts(self._job.control, file, upload["part_bytes"], ask)
        except Refused as why:
            raise NotUploaded(f"the service refused it: {why}") from why

    def _commit(self, stored: dict[Found, str]) -> Problems:
        try:
            if stored:
                self._job.call("outputs/commit", {"ids": list(stored.values())})
        except Refused as why:
            return {file: NotUploaded(f"the service refused it: {why}") for file in stored}
        for file in stored:
            self._uploaded.add(file)
            self._faults.say(f"uploaded {file.name}")
        return {}
