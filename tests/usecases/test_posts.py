"""What a job file has run after its script reaches the agent, at each attempt and each retry."""

from __future__ import annotations

from penstock.aws import dynamodb
from penstock.domain.commands import Hello, SubmitJob
from penstock.domain.jobfile.sections import Post
from penstock.domain.users.users import User
from penstock.testing.twin import Twin
from penstock.usecases.jobs import submit
from penstock.usecases.jobs.flow import spec_of
from penstock.usecases.units import drivers
from penstock.usecases.workers import agents
from tests.usecases.steps import TOKEN, finish, job_of, worker_of

FILE = """#!/bin/bash
#: name = "job"
#: variety = "basic"
#: [[post]]
#: name = "b"
#: on = "failure"
#: script = "dmesg"
#: [[post]]
#: name = "a"
#: on = "always"
#: script = "true"
"""
POSTS = [
    Post(name="b", on="failure", script="dmesg"),
    Post(name="a", on="always", script="true"),
]


def told(twin: Twin, job: str) -> object:
    twin.run()
    worker = worker_of(twin, job).id
    answer = agents.hello(twin.on, Hello(worker, drivers.bootstrap_key(twin.on.signing_key(), worker), TOKEN))
    twin.run()
    return answer.posts


def test_the_agent_is_told_them_in_their_order(twin: Twin, ada: User) -> None:
    job = submit.submit(twin.on, ada, SubmitJob(FILE), None)
    assert told(twin, job) == POSTS
    spec = spec_of(twin.on, job_of(twin, job))
    assert spec
    assert dynamodb.load("spec", dynamodb.dump(spec), spec.version) == spec
    finish(twin, job)
    assert told(twin, submit.retry(twin.on, ada, job_of(twin, job))) == POSTS


def test_a_job_without_any_has_none(twin: Twin, ada: User) -> None:
    assert told(twin, submit.submit(twin.on, ada, SubmitJob("#!/bin/bash\n"), None)) == []
