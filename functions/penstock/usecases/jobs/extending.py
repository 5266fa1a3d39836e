"""More time for a job that runs or waits, or for a lease without a job: its owner asks, within the site's bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.domain.jobs import deadlines
from penstock.domain.jobs.jobs import Job
from penstock.domain.site.site import Limits
from penstock.domain.users.users import User
from penstock.kernel import limits
from penstock.kernel.errors import Fault, Refused
from penstock.kernel.rows import Change, Replace
from penstock.system import System, current_site, transact
from penstock.toml.checks import parse_duration
from penstock.usecases.jobs import jobs
from penstock.usecases.logs import logs


def extend_job(on: System, user: User, job_id: str, length: int | str) -> Job:
    """Let a job run that long from now; or from its start, if it does not run yet. It never gets less time.

    Its agent learns it with its next call. Raises Refused 400 for no length, 404, 409 if the job has ended or is being
    cancelled, 422 if it would run for longer than the site allows.
    """
    job, is_longer = extend(on, lambda: _open(on, user, job_id), length)
    if is_longer:
        logs.append(on, job.id, job.attempt, f"{user.name} gave it more time: its timeout is {job.limits.timeout} s")
    return job


def _open(on: System, user: User, job_id: str) -> Job:
    found = jobs.find(on, user, job_id)
    if found.is_settled or found.run.report:
        raise Refused(409, "job-settled", f"the script of job {job_id} has ended: more time is of no use")
    if found.cancellation.cancelled_by:
        raise Refused(409, "job-cancelled", f"job {job_id} is being cancelled: more time is of no use")
    return found


def extend(on: System, find: Callable[[], Job], length: int | str) -> tuple[Job, bool]:
    """Give more time to what `find` reads anew for each try, and whether that is more than it had.

    Raises Refused 400 or 422, and whatever `find` raises.
    """
    seconds = _seconds(length)

    def decide() -> tuple[Sequence[Change], tuple[Job, bool]]:
        was = find()
        after = deadlines.extend(was, seconds, on.world.now())
        if after == was:
            return [], (was, False)
        check(after.limits.timeout, current_site(on).limits)
        return [Replace(was, after)], (after, True)

    return transact(on, decide)


def _seconds(length: int | str) -> int:
    """A length in seconds. Raises Refused 400 for what is no length of time, or none."""
    found = parse_duration(length)
    if isinstance(found, int) and 1 <= found <= limits.TIMEOUT_SECONDS:
        return found
    days = limits.TIMEOUT_SECONDS // (24 * 3600)
    why = f"for: {found}" if isinstance(found, str) else f"for must be from 1 second to {days} days"
    raise Refused(400, "bad-request", why, [Fault(why, where="for")])


def check(seconds: int, bounds: Limits) -> None:
    """Raises Refused 422 for more time than anything gets here: others wait for what it has."""
    if seconds > bounds.timeout_most:
        why = f"nothing is had for longer than {bounds.timeout_most} s in all here (limits.timeout_most)"
        raise Refused(422, "too-long", why, [Fault(why, where="for", hint="ask for less")])
