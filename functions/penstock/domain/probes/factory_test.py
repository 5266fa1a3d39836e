"""The factory test: an ordinary job that shows whether a factory works. Its script, and the checks from its rows.

The job gets a new worker, and all promises hold for it as for any other job: a test that nobody watches to its end
leaves nothing behind either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta

from penstock.domain.jobs.jobs import Job, Proves, Result
from penstock.domain.units.units import Hold, Search, Unit, UnitState, Visibility, add_entry, format_time
from penstock.kernel.frozen import dataclass

TAG = "penstock-test"
"""The tag of such a job; its value is the factory's name."""

OUTPUT = "/work/penstock-test.txt"
SAYS = "penstock test: "


WRONG = f"{SAYS}wrong: "


AS_DOCUMENTED = f"{SAYS}the environment is as documented"


SCRIPT = f"""#!/bin/sh
bad=
wrong() {{ echo "{WRONG}$*"; bad=yes; }}
is() {{ [ "$2" = "$3" ] || wrong "$1 is '$2', not '$3'"; }}
echo "{SAYS}job $PENSTOCK_JOB_ID on worker $PENSTOCK_WORKER_ID"
is PENSTOCK_TARGET "$PENSTOCK_TARGET" "$TEST_TARGET"
is PENSTOCK_ATTEMPT "$PENSTOCK_ATTEMPT" 1
is BUILDOMAT_JOB_ID "$BUILDOMAT_JOB_ID" "$PENSTOCK_JOB_ID"
is CI "$CI" true
is TZ "$TZ" UTC
is "what \\`bmat factory name\\` says" "$(bmat factory name)" "$TEST_FACTORY"
[ -n "$PENSTOCK_DEADLINE" ] || wrong "PENSTOCK_DEADLINE is not set"
for place in "PENSTOCK_ROOT=$PENSTOCK_ROOT" "PENSTOCK_WORK=$PENSTOCK_WORK" "PENSTOCK_INPUT=$PENSTOCK_INPUT" \\
  "HOME=$HOME" "TMPDIR=$TMPDIR"; do
  [ -d "${{place#*=}}" ] || wrong "$place is no folder"
done
[ "$bad" ] || echo "{AS_DOCUMENTED}"
printf 'penstock test of job %s\\n' "$PENSTOCK_JOB_ID" > "$PENSTOCK_WORK/penstock-test.txt"
"""


EVIDENCE = 20
"""How many of the last lines that a machine said are told of one that never said hello."""


def ordered(unit: Unit, tested: Proves, owner: str, now: datetime) -> Unit:
    """A unit as it is ordered for a test: it is searched for in its factory's list, and may be held."""
    unit = replace(unit, seen=Visibility())
    if tested.keep is None:
        return unit
    reason = f"a test of factory {tested.factory}: to look at it if that fails"
    hold = Hold(owner, reason, now, now + timedelta(seconds=tested.keep))
    return add_entry(replace(unit, hold=hold), now, str(hold))


@dataclass(frozen=True)
class Check:
    """One thing that must be so. `ok` is None while it is not known; at the end, that it was not reached."""

    check: str
    ok: bool | None = None
    detail: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class Facts:
    """What is known of a test: its rows, what its job and its machine said, and the digest of its output."""

    job: Job
    unit: Unit | None = None
    complaints: Sequence[str] = ()
    said: Sequence[str] = ()
    evidence: Sequence[str] = field(default=())
    output: str | None = None
    version: str = ""
    waits: str | None = None


def checks(facts: Facts) -> list[Check]:
    """All checks, in the order in which they come to be known."""
    each = (
        _settings, _ordered, _listed, _hello, _version, _ran, _line, _environment, _output, _destroyed, _unlisted,
    )  # fmt: skip
    return [check(facts) for check in each]


def _settings(facts: Facts) -> Check:
    wrong = "; ".join(facts.complaints)
    return Check("settings", not wrong, wrong or "its driver accepts them")


def _ordered(facts: Facts) -> Check:
    unit, job = facts.unit, facts.job
    if unit and unit.creation.made:
        return Check("ordered", True, f"worker {unit.id}", _between(job.times.ready, unit.creation.made))
    if job.is_settled:
        return Check("ordered", False, job.end.reason or "")
    return Check("ordered", None, (unit.step.reason if unit else None) or facts.waits or "")


def _listed(facts: Facts) -> Check:
    name, unit = "listed with its tags", facts.unit
    if unit is None or unit.seen is None or unit.creation.made is None:
        return Check(name)
    look = unit.seen.there
    if look.found:
        return Check(name, True, _after(look), _between(unit.creation.made, look.found))
    is_missed = look.is_over or unit.state not in (UnitState.CREATING, UnitState.READY)
    return Check(name, False if is_missed else None, look.why or f"not listed when looked for {_times(look.tries)}")


def _hello(facts: Facts) -> Check:
    name, unit, job = "agent said hello", facts.unit, facts.job
    if unit and job.times.started:
        return Check(name, True, "since it was ordered", _between(unit.creation.born, job.times.started))
    if unit is None or unit.creation.made is None or not job.is_settled:
        return Check(name)
    return Check(name, False, "\n".join([job.end.reason or "", *facts.evidence[-EVIDENCE:]]))


def _version(facts: Facts) -> Check:
    unit, name = facts.unit, "agent version"
    if unit is None or facts.job.times.started is None:
        return Check(name)
    same = unit.session.agent == facts.version
    return Check(
        name,
        same,
        unit.session.agent if same else f"it says {unit.session.agent or 'none'}; the service has {facts.version}",
    )


def _ran(facts: Facts) -> Check:
    job, name = facts.job, "job ran"
    report = job.run.report
    if report:
        good = report.result is Result.SUCCEEDED and report.exit_code == 0
        return Check(name, good, "exit 0" if good else report.reason, _between(job.times.started, report.time))
    return Check(name, False, job.end.reason or "") if _has_run(job) else Check(name)


def _has_run(job: Job) -> bool:
    """Whether its script was started, and all that is to come of it is there."""
    return job.is_settled and job.times.started is not None


def _line(facts: Facts) -> Check:
    name = "log came through"
    if facts.unit and f"{SAYS}job {facts.job.id} on worker {facts.unit.id}" in facts.said:
        return Check(name, True, "with the first line of its script")
    if not _has_run(facts.job):
        return Check(name)
    return Check(name, False, f"the first line of its script is not in its log of {len(facts.said)} lines")


def _environment(facts: Facts) -> Check:
    name = "environment"
    wrong = [line.removeprefix(WRONG) for line in facts.said if line.startswith(WRONG)]
    if AS_DOCUMENTED in facts.said:
        return Check(name, True, "as documented")
    if not _has_run(facts.job):
        return Check(name)
    return Check(name, False, "; ".join(wrong) or "the script did not come to say so")


def digest(job: str) -> str:
    """The SHA-256 of what the script writes, in hex."""
    return hashlib.sha256(f"penstock test of job {job}\n".encode()).hexdigest()


def _output(facts: Facts) -> Check:
    name = "output came back"
    if facts.output == digest(facts.job.id):
        return Check(name, True, f"{OUTPUT}, with the right SHA-256")
    if not _has_run(facts.job):
        return Check(name)
    return Check(name, False, f"its SHA-256 is {facts.output}" if facts.output else f"there is no {OUTPUT}")


def _destroyed(facts: Facts) -> Check:
    unit, name = facts.unit, "destroyed"
    if unit is None:
        return Check(name)
    if unit.state is not UnitState.GONE or unit.cleaning.proof is None:
        held = f"held until {format_time(unit.hold.until)}" if unit.hold and facts.job.is_settled else None
        return Check(name, None, held or (unit.step.reason if facts.job.is_settled else None) or "")
    proof = f"{unit.cleaning.proof.by}: {unit.cleaning.proof.checked}"
    return Check(name, True, proof, _between(facts.job.times.settled, unit.cleaning.proof.time))


def _unlisted(facts: Facts) -> Check:
    unit, name = facts.unit, "not listed any more"
    if unit is None or unit.seen is None or unit.state is not UnitState.GONE:
        return Check(name)
    look = unit.seen.gone
    if look.found:
        return Check(name, True, _after(look), _between(unit.since, look.found))
    return Check(name, False if look.is_over else None, look.why or f"still listed {_times(look.tries)}")


def _after(look: Search) -> str:
    return f"after {_times(look.tries)} without" if look.tries else "at once"


def _times(tries: int) -> str:
    return "once" if tries == 1 else f"{tries} times"


def _between(start: datetime | None, end: datetime | None) -> float | None:
    return max(0.0, (end - start).total_seconds()) if start and end else None
