"""penstock privilege."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.cli.service import Service


def test_somebody_asks_and_an_operator_decides(penstock: Run, service: Service) -> None:
    said = penstock("privilege", "request", "target.lab", "--reason", "boards", "--owner", "oxide:hubris").stdout
    assert said == "asked for target.lab for alice; an operator decides\n"
    assert penstock("privilege", "approve", "alice", "target.lab").stdout == "alice has target.lab\n"
    refused = penstock("privilege", "refuse", "alice", "target.lab", "--reason", "ask in May")
    assert refused.stdout == "refused target.lab for alice\n"
    asked = [(method, path, body) for method, path, _, body in service.asked]
    assert asked == [
        ("PUT", "/v1/privileges/target.lab/request", {"reason": "boards", "owner": "oxide:hubris"}),
        ("PUT", "/v1/users/alice/privileges/target.lab", None),
        ("POST", "/v1/users/alice/privileges/target.lab/refuse", {"reason": "ask in May"}),
    ]


def test_requests_are_listed_with_what_became_of_them(penstock: Run, service: Service) -> None:
    lines = penstock("privilege", "list").stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["STATE", "waiting", "granted", "refused"]
    assert penstock("privilege", "list", "--all").exit_code == 0
    assert service.asked[-1][1] == "/v1/privileges/requests?all=true&limit=100"


def test_a_reason_is_needed(penstock: Run, service: Service) -> None:
    assert penstock("privilege", "request", "target.lab").exit_code == 2
    assert penstock("privilege", "refuse", "alice", "target.lab").exit_code == 2
    assert service.asked == []
