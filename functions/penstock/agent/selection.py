"""Which files the output rules name."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from .faults import Faults
from .files import Found
from .job import Job
from .masking import Mask
from .outcome import Failure
from .places import Places
from .rules import Rule, expand

Matches = dict[Rule, list[Found]]


def match(job: Job, faults: Faults) -> Matches:
    """Return the files of each rule, without those that a rule ignores."""
    rules, places = job.order.rules, job.places
    ignored = {path for rule in rules if rule.ignore for path in expand(places.root, rule.parts)}
    found = {rule: list(_regular(places, rule, faults)) for rule in rules if not rule.ignore}
    loose = {path for rule in found if rule.may_change for path in found[rule]}

    def files(paths: list[str]) -> list[Found]:
        return [Found(places.in_job(path), path, path in loose) for path in paths if path not in ignored]

    return {rule: files(paths) for rule, paths in found.items()}


def select(matches: Matches, most: int, mask: Mask, faults: Faults) -> list[Found]:
    """Return each file once; too many, and names that can't be said in JSON, or to others, are faults."""
    files = list(dict.fromkeys(file for found in matches.values() for file in found))
    if len(files) > most:
        failure = Failure("too_many_outputs", {"files": len(files), "limit_files": most})
        faults.fail(f"the output rules match {len(files)} files; a job may have {most} outputs", failure)
    return [file for file in files[:most] if _is_nameable(file, mask, faults)]


def _regular(places: Places, rule: Rule, faults: Faults) -> Iterator[str]:
    """Yield the regular files that a rule matches; what is anything else is passed over. [SEC-1]"""
    for path in expand(places.root, rule.parts):
        with contextlib.suppress(OSError):
            if not stat.S_ISREG(os.stat(path).st_mode):
                continue
            if places.holds(path):
                yield path
            else:
                faults.say(f"warning: {places.in_job(path)} is a link to outside of the job; not uploaded")


def _is_nameable(file: Found, mask: Mask, faults: Faults) -> bool:
    try:
        file.name.encode("utf-8")
    except UnicodeEncodeError:
        why = f"the name of output {os.fsencode(file.name)!r} is not UTF-8"
        faults.fail(why, Failure("output_not_kept", {"error": why}))
        return False
    if mask.text(file.name) != file.name:
        why = f"the name of output {file.name} has a secret of the job's in it: it is not uploaded"
        faults.fail(why, Failure("output_not_kept", {"error": why}))
        return False
    return True
