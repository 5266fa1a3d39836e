"""How an attacker tried to get more than a share of what everybody waits for. [SEC-2]"""

from __future__ import annotations

from tests.functions.service import Answer, Service, token_of

SCRIPT = "#!/bin/sh\n"


def submit(service: Service, by: str, script: str = SCRIPT, **asked: object) -> Answer:
    return service.ask("POST", "/v1/jobs", {"script": script, "target": "linux", **asked}, as_=by)


def test_nobody_goes_before_the_others_unasked(service: Service) -> None:
    """By the request or by the file: a priority above 0 needs a privilege, and lower ones do not."""
    by_file = '#!/bin/sh\n#: name = "build"\n#: variety = "basic"\n#: priority = 100\n'
    for asked in ({"priority": 1}, {"script": by_file}):
        answer = submit(service, "bob", **asked)
        assert (answer.status, answer.json["code"]) == (403, "privilege-missing"), answer
        assert "needs the privilege 'priority'" in answer.json["detail"]
    for priority in (0, -1, -100):
        assert submit(service, "bob", priority=priority).status == 201
    assert service.ask("PUT", "/v1/users/bob/privileges/priority", token=token_of("root")).status == 200
    assert submit(service, "bob", priority=100).status == 201
