"""A plan before a submit: every check of a submit and a look at the queues; nothing is written."""

from __future__ import annotations

from penstock.domain import looks, plans, waits
from penstock.domain.commands import SubmitJob
from penstock.domain.plans import Plan
from penstock.domain.users import User
from penstock.system import System
from penstock.usecases import outlook, submitting


def plan(on: System, user: User, ask: SubmitJob) -> Plan:
    """What would become of a request if it were submitted now. Raises Refused for one that would be refused."""
    made = submitting.make(on, user, ask, planned=True)
    found = [outlook.of_step(on, made.job, step) for step in plans.steps_of(made.job)]
    privileges = list(looks.privileges(made.site, made.file))
    return plans.plan(made.job, privileges, [one[0] for one in found if one], waits.planned(made.job, made.priors))
