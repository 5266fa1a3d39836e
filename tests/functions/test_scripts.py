"""The job file that a job was submitted with, over HTTP. [SEC-1] [SEC-2]"""

from __future__ import annotations

import pytest

from penstock.domain.jobs.jobs import Spec
from penstock.kernel.rows import Delete
from tests.functions.service import Service, conforms, refused
from tests.functions.stage import Stage

MATRIX = '#!/bin/bash\n#: name = "test"\n#: variety = "basic"\n#: [matrix]\n#: os = ["a", "b"]\necho $MATRIX_OS\n'


def test_a_script_is_shown_as_it_was_submitted(service: Service) -> None:
    text = "#!/bin/bash\n\n# ü\t\r\necho 'as it is'"
    job = service.submit(script=text, path="ci/build.sh", env={"LEVEL": "3"})
    answer = service.ask("GET", f"/v1/jobs/{job}/script").json
    conforms(answer, "JobScript")
    assert answer == {"job": job, "path": "ci/build.sh", "script": text, "tasks": [], "matrix": {}}


@pytest.mark.parametrize("size", [0, 60_000], ids=["in the job's row", "in a row of its own"])
def test_a_script_is_shown_wherever_it_is_stored(service: Service, size: int) -> None:
    text = "#!/bin/bash\n" + "".join(f"echo {number}\n" for number in range(size // 10))
    job = service.submit(script=text)
    apart = any(isinstance(row, Spec) for row in service.twin.store.rows.values())
    assert apart is bool(size)
    assert service.ask("GET", f"/v1/jobs/{job}/script").json["script"] == text


def test_one_of_a_matrix_says_which_and_shows_the_file(service: Service) -> None:
    job = service.submit(script=MATRIX, matrix={"os": "b"})
    answer = service.ask("GET", f"/v1/jobs/{job}/script").json
    assert (answer["matrix"], answer["script"]) == ({"os": "b"}, MATRIX)


def test_a_job_of_tasks_has_no_script(service: Service) -> None:
    task = {"name": "make", "script": "make\n", "env": {"A": "1"}, "uid": 7}
    job = service.ask("POST", "/v1/jobs", {"tasks": [task]}).json["id"]
    answer = service.ask("GET", f"/v1/jobs/{job}/script").json
    conforms(answer, "JobScript")
    assert answer["script"] is None
    (shown,) = answer["tasks"]
    assert {name: shown[name] for name in task} == task


def test_others_get_nothing(service: Service) -> None:
    """SEC-2: another's script is as one that does not exist."""
    job = service.submit()
    refused(service.ask("GET", f"/v1/jobs/{job}/script", as_="bob"), 404, "job-not-found")
    refused(service.ask("GET", f"/v1/jobs/{job}/script", as_=None), 401, "no-token")
    assert service.ask("GET", f"/v1/jobs/{job}/script", as_="root").status == 200


def test_what_a_job_was_given_beside_its_file_is_not_in_it(service: Service) -> None:
    """SEC-1: values of the store, and what the job's resources have, are not shown with the script."""
    stage = Stage(service)
    stage.service.ask("PUT", f"/v1/jobs/{stage.job}/store/key", {"value": "hunter2", "secret": True})
    body = stage.service.ask("GET", f"/v1/jobs/{stage.job}/script").body.decode()
    assert not [secret for secret in ("hunter2", stage.key(), "w" * 43) if secret in body]


def test_a_script_that_is_no_longer_kept_is_gone_and_not_run_again(service: Service) -> None:
    job = service.submit(script="#!/bin/bash\n" + "".join(f"echo {number}\n" for number in range(6000)))
    (spec,) = [row for row in service.twin.store.rows.values() if isinstance(row, Spec)]
    service.twin.store.commit([Delete(spec)])
    refused(service.ask("GET", f"/v1/jobs/{job}/script"), 410, "spec-gone")
    refused(service.ask("POST", f"/v1/jobs/{job}/retry"), 410, "spec-gone")
