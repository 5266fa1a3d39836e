"""How an attacker tried to get more than a share of what everybody waits for. [SEC-2]"""

from __future__ import annotations

from tests.functions.service import SITE, Answer, Service, token_of

SCRIPT = "#!/bin/sh\n"


def submit(service: Service, by: str, script: str = SCRIPT, **asked: object) -> Answer:
    return service.ask("POST", "/v1/jobs", {"script": script, "target": "linux", **asked}, as_=by)


def limit(service: Service, **limits: int) -> None:
    """Have a site with these limits of each owner."""
    lines = "".join(f"{name} = {most}\n" for name, most in limits.items())
    asked = {"toml": f"{SITE}\n[limits]\n{lines}"}
    assert service.ask("PUT", "/v1/config", asked, token=token_of("root")).status == 200
    service.twin.run()


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


def test_a_flood_of_jobs_does_not_hold_up_others_where_there_are_shares(service: Service) -> None:
    """The flood is accepted, and whoever comes after it stands before all but the first of it."""
    shared = f'{SITE}\n[shares]\nhalf_life = "1d"\n'
    assert service.ask("PUT", "/v1/config", {"toml": shared}, token=token_of("root")).status == 200
    service.twin.run()
    flood = [submit(service, "bob").json["id"] for _ in range(60)]
    mine = submit(service, "ada").json["id"]
    service.twin.run()
    queue = service.ask("GET", "/v1/pools/target/linux", as_="ada").json["queue"]
    assert [each["job"] for each in queue[:2]] == [mine, flood[2]]  # two have the machines
    assert queue[0]["turn"] < queue[1]["turn"]
    assert service.ask("GET", f"/v1/jobs/{mine}/why", as_="ada").json["blocked_on"]["position"] == 1


def test_nobody_sees_what_others_used(service: Service) -> None:
    shared = f"{SITE}\n[shares]\n"
    assert service.ask("PUT", "/v1/config", {"toml": shared}, token=token_of("root")).status == 200
    for by in ("bob", "ada"):
        submit(service, by)
    seen = {by: service.ask("GET", "/v1/shares", as_=by).json for by in ("ada", "root")}
    assert [each["owner"] for each in seen["ada"]["items"]] == ["ada"]
    assert [each["owner"] for each in seen["root"]["items"]] == ["ada", "bob"]
    assert seen["ada"]["half_life"] == 86400


def test_a_flood_ends_at_its_owners_limit(service: Service) -> None:
    """However fast it comes, and however large its scripts are; others submit as before."""
    limit(service, jobs=5, submits=40)
    answers = [submit(service, "bob", script=SCRIPT + "#" * 100_000) for _ in range(60)]
    assert [answer.status for answer in answers] == [201] * 5 + [429] * 55
    assert answers[-1].json["code"] == "too-many-jobs"
    assert answers[-1].headers["retry-after"]
    assert submit(service, "ada").status == 201


def test_a_flood_of_jobs_leaves_the_machines_to_others_where_an_owner_has_some_at_once(service: Service) -> None:
    """Two machines are free, and the flood has one; it is told why the rest of it waits."""
    limit(service, at_once=1)
    flood = [submit(service, "bob", priority=0).json["id"] for _ in range(20)]
    mine = submit(service, "ada").json["id"]
    service.twin.run()
    states = [service.ask("GET", f"/v1/jobs/{job}", as_="root").json["state"] for job in (*flood, mine)]
    assert states == ["acquiring", *["waiting"] * 19, "acquiring"]
    why = service.ask("GET", f"/v1/jobs/{flood[5]}/why", as_="bob").json
    assert why["summary"] == (
        "the job waits until fewer jobs of bob are under way: 1 are, and 1 may be (limits.at_once); "
        "4 of its jobs stand before it"
    )
    assert why["unblocks"] == "one of the jobs of bob that are under way ends"


def test_scripts_that_fill_the_table(service: Service) -> None:
    """They are kept with their jobs: large ones, and many small ones. Others submit as before."""
    limit(service, script_bytes=1000000)
    large = [submit(service, "bob", script=SCRIPT + "#" * 200_000) for _ in range(10)]
    assert [answer.status for answer in large] == [201] * 5 + [429] * 5
    assert large[-1].json["code"] == "too-many-bytes"
    assert "limits.script_bytes" in large[-1].json["detail"]
    small = [submit(service, "ada", script=SCRIPT + "#" * 10_000).status for _ in range(130)]
    assert 80 < small.count(201) < 120
    assert small[-1] == 429
    service.twin.pass_time(3600)
    assert submit(service, "bob").status == 201
