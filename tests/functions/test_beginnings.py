"""The command line asks for jobs by the beginnings of their ids, and the HTTP API finds them."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from penstock.cli import references
from penstock.cli.client import Api, Transport
from penstock.cli.command import Session
from penstock.cli.errors import Refused
from penstock.testing.twin import Twin
from tests.functions.service import Service


class Sent:
    """Sends requests of the command line to the handlers."""

    def __init__(self, service: Service, as_: str) -> None:
        self._service, self._as = service, as_

    def send(self, method: str, path: str, *, params: Sequence[tuple[str, str]] = ()) -> Any:
        answer = self._service.ask(method, path, query=params, as_=self._as)
        assert answer.status == 200, answer
        return answer.json


def session(service: Service, as_: str = "ada") -> Session:
    """A session of a user of the service."""
    found = Session()
    found.api = Api(cast(Transport, Sent(service, as_)))
    return found


@pytest.fixture
def jobs(service: Service, twin: Twin) -> list[str]:
    """Twelve jobs of Ada's, a minute after each other."""
    found = []
    for _ in range(12):
        found.append(service.submit())
        twin.pass_time(60)
    return found


def test_every_beginning_finds_the_job_or_names_candidates(service: Service, jobs: list[str]) -> None:
    """Whichever and however long it is; the page of a list of jobs is an id, and lists the older ones."""
    on = session(service)
    for job in jobs:
        for length in range(1, 26):
            begun = job[:length]
            fits = [each for each in reversed(jobs) if each.startswith(begun)]
            if len(fits) == 1:
                assert references.JOB.resolve(on, begun) == job
                continue
            with pytest.raises(Refused) as refused:
                references.JOB.resolve(on, begun)
            assert refused.value.members == {"candidates": fits[:5], "more": len(fits) > 5}


def test_the_last_job_is_the_newest(service: Service, jobs: list[str]) -> None:
    assert references.JOB.resolve(session(service), "-") == jobs[-1]


def test_the_beginning_of_anothers_id_finds_nothing(service: Service, jobs: list[str]) -> None:
    """SEC-2: not even for an operator, who may name it by its whole id."""
    for user in ("bob", "root"):
        for given in (jobs[0][:20], "-"):
            with pytest.raises(Refused):
                references.JOB.resolve(session(service, user), given)
        assert references.JOB.resolve(session(service, user), jobs[0]) == jobs[0]


def test_shells_are_offered_the_newest_first(service: Service, jobs: list[str]) -> None:
    offered = references.JOB.offer(session(service), cast(Any, None), jobs[0][:4])
    assert [id for id, _ in offered] == jobs[::-1]
