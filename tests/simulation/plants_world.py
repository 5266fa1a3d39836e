"""Bugs that only show where AWS is as it is documented, for the simulation to find."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.pools.why import MissingPool
from penstock.domain.units.units import Journal
from penstock.kernel.errors import Unreached
from penstock.usecases.jobs import settle
from penstock.usecases.pools import forecast
from simulation.ports import SimulatedQueues


def believe_that_it_was_sent(patch: pytest.MonkeyPatch) -> None:
    """A message that SQS refused, because it had too much to do, counts as sent."""
    request = SimulatedQueues._request

    def believing(queues: SimulatedQueues, *message: Any) -> None:
        with contextlib.suppress(Unreached):
            request(queues, *message)

    patch.setattr(SimulatedQueues, "_request", believing)


def an_event_ends_whatever_runs(patch: pytest.MonkeyPatch) -> None:
    """What EventBridge reports of an attempt ends the job's present one, although it may come twice."""
    end = settle.settle

    def settled(on: Any, job_id: str, attempt: int, error: Any, *how: Any, **more: Any) -> None:
        job = on.store.get(job_key(job_id), Job)
        end(on, job_id, job.attempt if job and error else attempt, error, *how, **more)

    patch.setattr(settle, "settle", settled)


def fails_what_is_still_to_come(patch: pytest.MonkeyPatch) -> None:
    """A step whose pool is not there fails, although the site has just got it and its rollout comes to it."""
    missing = forecast.missing_pool

    def never_comes(on: Any, *names: str) -> MissingPool | None:
        found = missing(on, *names)
        return replace(found, is_coming=False) if found else None

    patch.setattr(forecast, "missing_pool", never_comes)


def time_only_goes_on(patch: pytest.MonkeyPatch) -> None:
    """Who writes to a journal has the same clock as who wrote there before."""
    add = Journal.with_

    def added(journal: Journal, now: datetime, what: str) -> Journal:
        assert not journal.entries or journal.entries[-1].time <= now
        return add(journal, now, what)

    patch.setattr(Journal, "with_", added)
