"""What an attacker's job left behind on its machine, however well hidden, for the next job there. [SEC-2]"""

from __future__ import annotations

from penstock.domain.units.units import UnitState
from tests.functions.service import SITE, Service, token_of
from tests.usecases.steps import worker_of
from tests.usecases.warm import Agent, unit_of

WARM = SITE.replace("limit = 2", 'limit = 2\nwarm = { max = 2, idle = "10m" }', 1)
"""The site, which keeps workers for the next job."""


def idle_worker(service: Service, by: str) -> str:
    """A worker that had a job of a user, and says that it is clean."""
    job = submit(service, by)
    agent = Agent(service.twin, worker_of(service.twin, job).id)
    agent.hello()
    agent.finish(job)
    agent.hello()
    assert unit_of(service.twin, agent.worker).state is UnitState.IDLE
    return agent.worker


def submit(service: Service, by: str) -> str:
    answer = service.ask("POST", "/v1/jobs", {"script": "#!/bin/sh\n", "target": "linux"}, as_=by)
    assert answer.status == 201, answer
    service.twin.run()
    job: str = answer.json["id"]
    return job


def test_a_machine_is_not_handed_over_to_somebody_else(service: Service) -> None:
    assert service.ask("PUT", "/v1/config", {"toml": WARM}, token=token_of("root")).status == 200
    service.twin.run()
    bobs = idle_worker(service, "bob")
    assert worker_of(service.twin, submit(service, "ada")).id != bobs
    assert worker_of(service.twin, submit(service, "bob")).id == bobs


def test_a_machine_is_not_passed_on_by_way_of_a_full_pool(service: Service) -> None:
    """Both slots have machines of the attacker's. They are destroyed for who comes, and not handed over."""
    assert service.ask("PUT", "/v1/config", {"toml": WARM}, token=token_of("root")).status == 200
    service.twin.run()
    first = submit(service, "bob")
    spoilt = {idle_worker(service, "bob")}
    agent = Agent(service.twin, worker_of(service.twin, first).id)
    agent.hello()
    agent.finish(first)
    agent.hello()
    spoilt.add(agent.worker)
    assert len(spoilt) == 2
    assert worker_of(service.twin, submit(service, "ada")).id not in spoilt
