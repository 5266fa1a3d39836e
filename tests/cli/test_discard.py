"""penstock job discard: what is asked, what is said, and what is refused."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.cli.service import Service


def test_who_says_yes_has_it_deleted(penstock: Run, service: Service) -> None:
    job = service.add("succeeded")
    penstock("job", "tail", job)
    done = penstock("job", "discard", job, input="y\n")
    assert (done.exit_code, f"Delete the files and the log of job {job}?" in done.stderr) == (0, True)
    assert f"the files and the log of job {job} are being deleted" in done.output


@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_who_does_not_say_yes_asks_nothing_of_the_service(penstock: Run, service: Service, answer: str) -> None:
    job = service.add("succeeded")
    done = penstock("job", "discard", job, input=answer)
    assert done.exit_code != 0
    assert not service.asked


def test_a_job_that_goes_on_is_refused_in_a_sentence(penstock: Run, service: Service) -> None:
    done = penstock("job", "discard", service.add("never"), "--yes")
    assert (done.exit_code, "cancel it first" in done.stderr) == (2, True)


def test_a_program_gets_the_job(penstock: Run, service: Service) -> None:
    job = service.add("succeeded")
    penstock("job", "tail", job)
    assert json.loads(penstock("job", "discard", job, "--yes", "--json").stdout)["id"] == job
