"""The job's outputs: which files the output rules select, how they are uploaded, and which faults they have."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .client import Refused
from .job import Failure, Job, Rule
from .joblog import DETAIL, Outbox
from .machine import Machine, size_text
from .masking import Mask
from .uploads import File, MeasuredFile, NotUploaded, in_parallel, measure_file, upload_file, upload_parts

Matches = dict[Rule, list[File]]
ROUNDS = 3  # tries for a batch: with fresh URLs, for one may have expired, and fresh hashes of files that changed
BATCH_FILES = 50
Problems = dict[File, NotUploaded]


def matching_paths(base: str, parts: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths below `base` that match a pattern. A `**` at the end matches all files at any depth."""
    if not parts:
        yield base
        return
    first, rest = parts[0], parts[1:]
    if first == "**":
        for directory in _directories(base):
            yield from matching_paths(directory, rest or ("*",))
        return
    for name in _matching_names(base, first):
        yield from matching_paths(os.path.join(base, name), rest)


def _directories(base: str) -> Iterator[str]:
    """Yield a directory and all below it, parents first. Doesn't follow symlinks, so it ends.

    `os.walk` before Python 3.12 recurses, and fails on deep trees.
    """
    pending = [base]
    while pending:
        directory = pending.pop()
        yield directory
        with contextlib.suppress(OSError), os.scandir(directory) as entries:
            inner = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
            pending += reversed(inner)


def _matching_names(base: str, pattern: str) -> list[str]:
    """Return the names in a directory that match; none if it is no directory."""
    if not re.search(r"[*?\[]", pattern):
        return [pattern] if os.path.lexists(os.path.join(base, pattern)) else []
    with contextlib.suppress(OSError):
        return sorted(name for name in os.listdir(base) if fnmatch.fnmatchcase(name, pattern))
    return []


@dataclass(frozen=True)
class OutputFault:
    """What is wrong with the outputs, in words and as a failure."""

    text: str
    failure: Failure


class OutputFaults:
    """Logs what is wrong with outputs. The first fault is the one for which the job fails."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self.first: OutputFault | None = None

    def say(self, text: str, stream: str = "worker") -> None:
        self._outbox.put(stream, None, text)

    def fail(self, text: str, failure: Failure) -> None:
        self.say(f"error: {text}")
        self.first = self.first or OutputFault(text, failure)

    def blame(self, file: File, why: NotUploaded) -> None:
        """Log a file that was not uploaded: as a warning if it may change while it is read, as a fault otherwise."""
        text = f"output {file.name} was not uploaded: {why}"
        if why.moving and file.may_change:
            self.say(f"warning: {text}")
        else:
            self.fail(text, _upload_failure(file, why))


def _upload_failure(file: File, why: NotUploaded) -> Failure:
    if why.limit is not None:
        return Failure("output_too_large", {"path": file.name, "size_bytes": why.size, "limit_bytes": why.limit})
    return Failure("output_not_kept", {"path": file.name, "error": str(why)})


def match_rules(job: Job, faults: OutputFaults) -> Matches:
    """Return the files of each rule, without those that a rule ignores."""
    rules, machine = job.order.rules, job.machine
    ignored = {path for rule in rules if rule.ignore for path in matching_paths(machine.root, rule.parts)}
    found = {rule: list(_regular(machine, rule, faults)) for rule in rules if not rule.ignore}
    loose = {path for rule in found if rule.may_change for path in found[rule]}

    def files(paths: list[str]) -> list[File]:
        return [File(machine.job_path(path), path, path in loose) for path in paths if path not in ignored]

    return {rule: files(paths) for rule, paths in found.items()}


def select_files(matches: Matches, most: int, mask: Mask, faults: OutputFaults) -> list[File]:
    """Return each file once. Too many files are a fault, and so are names that are not UTF-8 or contain a secret."""
    files = list(dict.fromkeys(file for found in matches.values() for file in found))
    if len(files) > most:
        failure = Failure("too_many_outputs", {"files": len(files), "limit_files": most})
        faults.fail(f"the output rules match {len(files)} files; a job may have {most} outputs", failure)
    return [file for file in files[:most] if _is_nameable(file, mask, faults)]


def _regular(machine: Machine, rule: Rule, faults: OutputFaults) -> Iterator[str]:
    """Yield the regular files that match a rule, and nothing else. [SEC-1]"""
    for path in matching_paths(machine.root, rule.parts):
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(os.stat(path).st_mode):
                continue
            if machine.contains(path):
                yield path
            else:
                name = machine.job_path(path)
                faults.say(f"warning: {name} is a link that leads out of the job's root; it is not uploaded")


def _is_nameable(file: File, mask: Mask, faults: OutputFaults) -> bool:
    try:
        file.name.encode("utf-8")
    except UnicodeEncodeError:
        why = f"the name of output {os.fsencode(file.name)!r} is not UTF-8"
        faults.fail(why, Failure("output_not_kept", {"error": why}))
        return False
    if mask.text(file.name) != file.name:
        why = f"the name of output {file.name} contains a secret of the job: it is not uploaded"
        faults.fail(why, Failure("output_not_kept", {"error": why}))
        return False
    return True


def commit_outputs(job: Job, ids: Sequence[str]) -> OutputFault | None:
    """Have the service record uploads, since it refused to do so with the outcome. Return what is wrong with them."""
    faults = OutputFaults(job.outbox)
    try:
        job.call("outputs/commit", {"ids": list(ids)})
    except Refused as why:
        faults.fail(f"outputs were not kept: {why}", Failure("output_not_kept", {"error": str(why)}))
    job.outbox.flush()
    return faults.first


class Outputs:
    """The outputs of a job.

    `with_outcome`: the outcome follows at once. Then the service records the files of the last batch together with it,
    which is one call less. `uncommitted` has their ids.
    """

    def __init__(self, job: Job, with_outcome: bool = False) -> None:
        self._job, self._faults, self._with_outcome = job, OutputFaults(job.outbox), with_outcome
        self._uploaded: set[File] = set()
        self._is_last_batch = False
        self.uncommitted: list[str] = []

    def run(self) -> OutputFault | None:
        """Upload the outputs. Return what is wrong with them, or None. Raises ServiceError."""
        matches = match_rules(self._job, self._faults)
        files = select_files(matches, self._job.order.limits["outputs"], self._job.mask, self._faults)
        for start in range(0, len(files), BATCH_FILES):
            self._is_last_batch = start + BATCH_FILES >= len(files)
            self._upload(files[start : start + BATCH_FILES])
        for rule, found in matches.items():
            if rule.required and self._uploaded.isdisjoint(found):
                why = f'no file was uploaded for output rule "{rule.text}", which requires one'
                self._faults.fail(why, Failure("output_missing", {"rule": rule.text}))
        return self._faults.first

    def _upload(self, files: list[File]) -> None:
        """Upload a batch. Retry what could not be stored, except files that changed and must not."""
        for _ in range(ROUNDS):
            problems = self._send(self._measure(files))
            for file, why in problems.items():
                if why.moving and not file.may_change:
                    self._faults.blame(file, why)
            files = [file for file, why in problems.items() if file.may_change or not why.moving]
        for file in files:
            self._faults.blame(file, problems[file])

    def _measure(self, files: list[File]) -> list[MeasuredFile]:
        """Measure all files. Those that cannot be uploaded are reported and left out."""
        measured, bounds = [], self._job.order.limits
        for file in files:
            try:
                measured.append(measure_file(file, bounds["output_bytes"], bounds["part_bytes"]))
            except NotUploaded as why:
                self._faults.blame(file, why)
        return measured

    def _send(self, files: list[MeasuredFile]) -> Problems:
        """Upload a batch and commit what was stored. Return the problems with the others.

        A file of several parts is a batch of its own: while it is sent, maybe for hours, no other name expires.
        """
        if not files:
            return {}
        big = [f for f in files if f.parts]
        if big and len(files) > 1:
            self._is_last_batch = False  # the small ones are recorded at once: the outcome may be hours away
            batches = [[f for f in files if not f.parts], *([f] for f in big)]
            return {name: problem for batch in batches for name, problem in self._send(batch).items()}
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

    def _store(self, files: list[MeasuredFile], uploads: dict[str, Any]) -> Problems:
        """Send the files of a batch, then let the service check and keep them."""
        failed = in_parallel(lambda file: self._put(file, uploads[file.file.name]), files)
        problems = {file.file: why for file, why in failed.items()}
        stored = {f.file: uploads[f.file.name]["id"] for f in files if f.file not in problems}
        if self._are_recorded_later(files):
            self.uncommitted += stored.values()
            self._note_uploaded(stored)
            return problems
        return {**problems, **self._commit(stored)}

    def _are_recorded_later(self, files: list[MeasuredFile]) -> bool:
        """Whether files may wait for the outcome. Joining the parts of a file may fail, and is then tried again."""
        comes = self._with_outcome and self._is_last_batch and not self._job.control.abandoned
        return comes and not any(f.parts for f in files)

    def _put(self, file: MeasuredFile, upload: dict[str, Any]) -> None:
        if file.parts:
            self._put_parts(file, upload)
            return
        self._faults.say(f"uploading {file.file.name} ({size_text(file.size)})", DETAIL)
        upload_file(self._job.control, file, upload)

    def _put_parts(self, file: MeasuredFile, upload: dict[str, Any]) -> None:
        self._faults.say(f"uploading {file.file.name} ({size_text(file.size)}, in {len(file.parts)} parts)", DETAIL)

        def ask(first: int, digests: Sequence[str]) -> Any:
            body = {"id": upload["id"], "first": first, "sha256": list(digests)}
            return self._job.call("outputs/parts", body)["parts"]

        try:
            upload_parts(self._job.control, file, upload["part_bytes"], ask)
        except Refused as why:
            raise NotUploaded(f"the service refused it: {why}") from why

    def _commit(self, stored: dict[File, str]) -> Problems:
        try:
            if stored:
                self._job.call("outputs/commit", {"ids": list(stored.values())})
        except Refused as why:
            return {file: NotUploaded(f"the service refused it: {why}") for file in stored}
        self._note_uploaded(stored)
        return {}

    def _note_uploaded(self, files: Iterable[File]) -> None:
        for file in files:
            self._uploaded.add(file)
            self._faults.say(f"uploaded {file.name}", DETAIL)
