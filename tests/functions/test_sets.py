"""The jobs of a set over HTTP: those of a folder, and those of a commit. [SEC-2]"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.commands import SubmitJob
from penstock.domain.jobs.jobs import Job, Provenance
from penstock.domain.jobs.members import Member
from penstock.domain.users.users import User, user_key
from penstock.testing.twin import Twin
from penstock.usecases.jobs import submit
from tests.functions.reading import counted
from tests.functions.service import Service, conforms, refused

MATRIX = '#!/bin/bash\n#: name = "test"\n#: variety = "basic"\n#: [matrix]\n#: os = ["a", "b"]\necho $MATRIX_OS\n'


def submitted(service: Service, set: str = "s-1", **ask: Any) -> str:
    return service.submit(tags={"set": set, "a": "b"}, **ask)


def read(service: Service, set: str = "s-1", as_: str = "ada", **query: str) -> Any:
    answer = service.ask("GET", f"/v1/sets/{set}", query=query, as_=as_)
    assert answer.status == 200, answer
    conforms(answer.json, "SetView")
    return answer.json


def test_the_jobs_of_a_set_are_shown_with_their_edges_and_values(service: Service) -> None:
    submitted(service, "other")
    first = submitted(service, name="build")
    second = submitted(service, script=MATRIX, matrix={"os": "b"}, dependencies={"build": {"job": first}})
    service.submit(tags={"set": "s-11"})
    found = read(service)
    assert (found["set"], found["owner"], found["next"]) == ("s-1", "ada", None)
    build, test = found["items"]
    assert (build["id"], build["name"], build["dependencies"], build["matrix"]) == (first, "build", [], {})
    assert (test["id"], test["name"], test["matrix"]) == (second, "test (b)", {"os": "b"})
    assert test["dependencies"] == [{"name": "build", "job": first, "on": "success", "copy_outputs": True}]
    assert (test["state"], test["waits_for"]) == ("waiting", "other jobs")


def test_each_job_of_a_set_is_shown_as_by_itself(service: Service) -> None:
    ids = [submitted(service, resources=["bench"]) for _ in range(3)]
    service.ask("POST", f"/v1/jobs/{ids[2]}/cancel")
    service.twin.run()
    for shown in read(service)["items"]:
        alone = service.ask("GET", f"/v1/jobs/{shown['id']}").json
        same = [name for name in shown if name in alone and name != "failure"]
        assert {name: shown[name] for name in same} == {name: alone[name] for name in same}
        assert shown["failure"] == (alone["failure"] or {}).get("kind")
    states = [(each["state"], each["outcome"], each["waits_for"]) for each in read(service)["items"]]
    assert states[1:] == [("waiting", None, "resource/bench"), ("settled", "cancelled", None)]


def test_pages_go_on_where_the_one_before_ended(service: Service) -> None:
    ids = [submitted(service) for _ in range(5)]
    pages = [read(service, limit="2")]
    while pages[-1]["next"]:
        pages.append(read(service, limit="2", page=pages[-1]["next"]))
    assert [[each["id"] for each in page["items"]] for page in pages] == [ids[:2], ids[2:4], ids[4:]]
    assert read(service, limit="5")["next"] is None
    assert read(service, page=ids[-1])["items"] == []


def test_a_page_takes_one_query_however_many_jobs_there_are(service: Service) -> None:
    for number in range(12):
        submitted(service, f"s-{number % 2}", resources=["bench"])
    read(service)
    with counted() as reads:
        assert len(read(service)["items"]) == 6
    assert reads == {"find": 1, "rows_at": 2}


def test_a_job_that_is_submitted_once_more_is_of_the_set_too(service: Service) -> None:
    job = submitted(service)
    service.ask("POST", f"/v1/jobs/{job}/cancel")
    service.twin.run()
    again = service.ask("POST", f"/v1/jobs/{job}/retry").json["id"]
    assert [each["id"] for each in read(service)["items"]] == [job, again]


def test_a_job_is_submitted_once_more_after_another_job_and_keeps_its_place_in_the_set(service: Service) -> None:
    build = submitted(service, name="build")
    asked = {"dependencies": {"build": {"job": build, "on": "always"}}, "name": "test"}
    test = submitted(service, **asked)
    new = service.ask("POST", f"/v1/jobs/{build}/retry").json["id"]
    keyed = {"body": {"dependencies": {"build": new}}, "headers": {"idempotency-key": "k"}}
    again = {service.ask("POST", f"/v1/jobs/{test}/retry", **keyed).json["id"] for _ in range(2)}
    items = read(service)["items"]
    assert [each["id"] for each in items] == [build, test, new, *again]
    assert [each["name"] for each in items] == ["build", "test"] * 2
    assert items[-1]["dependencies"] == [{"name": "build", "job": new, "on": "always", "copy_outputs": True}]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"dependencies": {"b": "x"}}, "has no dependency 'b'; it depends on no job"),
        ({"dependencies": {"b": 1}}, "dependencies.b must be a string"),
        ({"dependencies": {"b": {"job": "x"}}}, "dependencies.b must be a string"),
        ({"dependencies": ["b"]}, "dependencies must be an object"),
        ({"after": {}}, "keys that are not known"),
    ],
)
def test_a_retry_that_cannot_be(service: Service, body: object, says: str) -> None:
    answer = service.ask("POST", f"/v1/jobs/{submitted(service)}/retry", body)
    refused(answer, 400, "bad-request")
    assert says in answer.json["detail"]


def test_a_repeated_request_is_one_job_of_the_set(service: Service) -> None:
    body = {"script": "#!/bin/sh\n", "tags": {"set": "s-1"}}
    ids = {service.ask("POST", "/v1/jobs", body, headers={"idempotency-key": "k"}).json["id"] for _ in range(2)}
    assert [each["id"] for each in read(service)["items"]] == list(ids)


def test_others_get_nothing_and_a_name_says_whose(service: Service) -> None:
    """SEC-2: a set of another is as one that does not exist."""
    job = submitted(service)
    refused(service.ask("GET", "/v1/sets/s-1", as_="bob"), 404, "set-not-found")
    refused(service.ask("GET", "/v1/sets/s-1", as_="bob", query={"owner": "ada"}), 404, "set-not-found")
    refused(service.ask("GET", "/v1/sets/s-1", as_="root"), 404, "set-not-found")
    assert [each["id"] for each in read(service, as_="root", owner="ada")["items"]] == [job]
    refused(service.ask("GET", "/v1/sets/none"), 404, "set-not-found")
    refused(service.ask("GET", "/v1/sets/none", query={"owner": "x" * 3000}, as_="root"), 404, "set-not-found")
    for long in (101, 3000):
        refused(service.ask("GET", f"/v1/sets/{'x' * long}"), 404, "set-not-found")


def test_a_set_stays_readable_when_its_owner_is_renamed(service: Service) -> None:
    job = submitted(service)
    assert service.ask("POST", "/v1/users/ada/rename", {"name": "adele"}, as_="root").status == 200
    found = read(service)
    assert (found["owner"], [each["id"] for each in found["items"]]) == ("ada", [job])


@pytest.mark.parametrize("id", ["", "a b", "x" * 101, "ä", "a/b", "a#b"])
def test_a_tag_that_cannot_be_an_id_makes_no_set(service: Service, id: str) -> None:
    service.submit(tags={"set": id})
    assert not [row for row in service.twin.store.rows.values() if isinstance(row, Member)]


def test_only_what_the_front_end_submits_is_of_a_commit(service: Service, twin: Twin) -> None:
    """SEC-2: a job that only says it was of a commit is not in the commit's set."""
    service.submit(tags={"commit": "a" * 40})
    refused(service.ask("GET", f"/v1/sets/{'a' * 40}"), 404, "set-not-found")
    ada = twin.store.get(user_key("ada"), User)
    assert ada
    script = '#!/bin/bash\n#: name = "build"\n#: variety = "basic"\n#: [tags]\n#: set = "s-1"\n'
    ask = SubmitJob(script=script, tags={"commit": "a" * 40})
    job = submit.submit(twin.on, ada, ask, None, commit=Provenance(check="check#1"))
    assert [each["id"] for each in read(service, "a" * 40)["items"]] == [job], "its file takes it out of no set"
    refused(service.ask("GET", "/v1/sets/s-1"), 404, "set-not-found")


def test_a_job_whose_row_is_gone_is_left_out(service: Service) -> None:
    ids = [submitted(service) for _ in range(2)]
    (row,) = [row for row in service.twin.store.rows.values() if isinstance(row, Job) and row.id == ids[0]]
    del service.twin.store.rows[row.key]
    assert [each["id"] for each in read(service)["items"]] == ids[1:]
