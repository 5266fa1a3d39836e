"""What read commands print: JSON as the API has it, tables for people, pages."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from penstock.api.document import document
from penstock.domain.users.users import TokenKind, token_secret
from penstock.kernel.rows import ulid
from tests.cli.conftest import Run
from tests.cli.service import COST, FACTORY, HELD, OUTPUT, POOL, SETTLED, SHARES, SLOTS, SUBMITTED, SUMS, Service


def ids(text: str) -> list[str]:
    return [job["id"] for job in json.loads(text)]


def test_list_is_an_array(penstock: Run, service: Service) -> None:
    for _ in range(3):
        service.add()
    assert ids(penstock("job", "list", "--json").stdout) == ["j1", "j2", "j3"]


def test_json_may_stand_anywhere(penstock: Run, service: Service) -> None:
    service.add()
    for words in (("--json", "job", "list"), ("job", "--json", "list"), ("job", "list", "--json")):
        assert ids(penstock(*words).stdout) == ["j1"]


def test_pages(penstock: Run, service: Service) -> None:
    for _ in range(230):
        service.add()
    assert len(ids(penstock("job", "list", "--json").stdout)) == 50
    assert len(ids(penstock("job", "list", "--json", "--limit", "120").stdout)) == 120
    assert len(ids(penstock("job", "list", "--json", "--no-limit").stdout)) == 230
    assert "there are more" in penstock("job", "list", "--limit", "229").stderr
    assert "there are more" not in penstock("job", "list", "--limit", "230").stderr


def test_filters_are_sent(penstock: Run, service: Service) -> None:
    penstock("job", "list", "--state", "settled", "--target", "lab", "-T", "a=1", "-T", "b=2")
    penstock("job", "list", "--owner", "oxide:hubris")
    penstock("job", "list", "--all", "--state", "failed", "--name", "build*", "--since", "2026-01-31T10:00:00Z")
    assert service.paths("GET") == [
        "/v1/jobs?state=settled&target=lab&tag=a%3D1&tag=b%3D2&limit=50",
        "/v1/jobs?owner=oxide%3Ahubris&limit=50",
        "/v1/jobs?state=failed&name=build%2A&since=2026-01-31T10%3A00%3A00.000%2B00%3A00&all=true&limit=50",
    ]


def test_since_is_a_time_or_how_long_ago_that_is(penstock: Run, service: Service) -> None:
    penstock("job", "list", "--since", "2d")
    said = parse_qs(urlsplit(service.paths("GET")[0]).query)["since"][0]
    ago = datetime.now(UTC) - datetime.fromisoformat(said)
    assert timedelta(days=2) <= ago < timedelta(days=2, minutes=10)
    for wrong in ("yesterday", "2026-13-01", "9999999999d"):
        ran = penstock("job", "list", "--since", wrong)
        assert ran.exit_code == 2
        assert wrong in ran.stderr


def test_all_and_an_owner_exclude_each_other(penstock: Run) -> None:
    ran = penstock("job", "list", "--all", "--owner", "ada")
    assert ran.exit_code == 2
    assert "exclude each other" in ran.stderr


def test_show_factory_includes_its_health(penstock: Run) -> None:
    shown = penstock("factory", "show", "aws").stdout
    row = next(line for line in shown.splitlines() if "m6i.large" in line)
    assert [word in row for word in ("capacity", SETTLED, " 4 ", "w-7", "InsufficientInstanceCapacity")] == [True] * 5
    assert next(line for line in shown.splitlines() if line.startswith("compared")).endswith(SETTLED)
    assert "not listed  2" in shown
    assert "w-9" in shown
    assert next(line.split() for line in shown.splitlines() if "Unknown:Odd" in line)[1] == "3"
    assert json.loads(penstock("factory", "show", "aws", "--json").stdout) == FACTORY


def test_show_resource_type_includes_its_options(penstock: Run) -> None:
    *_, head, row = penstock("resource-type", "show", "database").stdout.splitlines()
    assert head.split() == ["NAME", "KIND", "ALLOWED", "DEFAULT", "MEANING"]
    assert row.split() == ["version", "string", "15,", "16", "16", "of", "the", "server"]
    assert penstock("resource-type", "show", "bench").stdout.endswith("\noptions of a job: none\n")
    assert penstock("resource-type", "show", "strange").stdout.endswith("\noptions of a job: its well does not say\n")
    assert "options of a job" not in penstock("target", "show", "default").stdout


def test_empty_lists(penstock: Run) -> None:
    result = penstock("job", "list")
    assert (result.stdout, "no jobs yet" in result.stderr) == ("", True)
    assert json.loads(penstock("worker", "list", "--json").stdout) == []


def test_table_is_aligned_and_whole(penstock: Run, service: Service) -> None:
    service.add(name="a" * 200)
    header, row = penstock("job", "list").stdout.splitlines()
    assert header.index("NAME") == row.index("a" * 200)
    assert SUBMITTED in row


def test_names_cannot_move_the_cursor(penstock: Run, service: Service) -> None:
    service.add(name="\x1b]0;owned\x07[red]x")
    assert "\x1b" not in penstock("job", "list").stdout
    assert "[red]x" in penstock("job", "list").stdout


def test_show(penstock: Run, service: Service) -> None:
    job = service.add("failed")
    assert json.loads(penstock("job", "show", job, "--json").stdout) == service.jobs[job].json()
    shown = penstock("job", "show", job).stdout
    for part in ("default (now ubuntu-24.04)", "30m", "bench-1"):
        assert part in shown


def test_show_says_what_a_job_chooses(penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    job = service.add()
    assert "CHOOSES" not in penstock("job", "show", job).stdout
    kind, shown = type(service.jobs[job]), service.jobs[job].json()
    chosen = [{**shown["resources"][0], "choice": "rack == 4"}]
    monkeypatch.setattr(kind, "json", lambda self: {**shown, "resources": chosen})
    assert "rack == 4" in penstock("job", "show", job).stdout


def test_why(penstock: Run, service: Service) -> None:
    shown = penstock("job", "why", service.add()).stdout
    for part in ("the job waits for bench", "resource/bench: 1 of 1 held, 0 free", "bench-1", "j8"):
        assert part in shown
    for part in ("expected start  2026-01-01T10:01:00Z", "12 holders", "then bench-1 is given back by j8"):
        assert part in shown
    assert json.loads(penstock("job", "why", "j1", "--json").stdout)["blocked_on"]["position"] == 2


def test_graph(penstock: Run, service: Service) -> None:
    assert penstock("pool", "show", "--graph").stdout.splitlines() == [
        "digraph penstock {",
        "  rankdir=LR;",
        '  "resource/bench" [label="resource/bench: \\"1\\\\1\\" held", shape=box];',
        '  "j8" [label="job j8", shape=ellipse];',
        '  "resource/bench" -> "j8" [label="held by", style=solid];',
        '  "j8" -> "resource/bench" [label="waits", style=dashed];',
        "}",
    ]
    for words in (("--format", "json"), ("--json",)):
        assert json.loads(penstock("pool", "show", "--graph", *words).stdout) == service.graph


def test_graph_reports_cycles_and_omissions(penstock: Run, service: Service) -> None:
    service.graph = service.graph | {"cycle": ["j8", "resource/bench"], "left_out": 7}
    said = penstock("pool", "show", "--graph").stderr
    assert "j8 -> resource/bench" in said
    assert "7 more" in said


def test_pool_show_needs_a_pool_or_graph(penstock: Run) -> None:
    for words in ((), ("resource/bench", "--graph")):
        result = penstock("pool", "show", *words)
        assert (result.exit_code, "--graph" in result.stderr) == (2, True)


def test_the_script_of_a_job_is_printed_as_it_is(penstock: Run, service: Service) -> None:
    job = service.add(script="#!/bin/bash\necho '*  *'\n")
    assert penstock("job", "script", job).stdout == "#!/bin/bash\necho '*  *'\n"
    assert json.loads(penstock("job", "script", job, "--json").stdout)["job"] == job


def test_the_tasks_of_a_job_without_a_script_are_printed_as_json(penstock: Run, service: Service) -> None:
    tasks = [{"name": "make", "script": "make"}]
    assert json.loads(penstock("job", "script", service.add(tasks=tasks)).stdout) == tasks


def test_the_hours_of_a_pool(penstock: Run, service: Service) -> None:
    said = penstock("pool", "history", "resource/bench").stdout.splitlines()
    assert said[0].split() == ["HOUR", "(UTC)", "HELD", "IDLE", "WAITING", "MOST", "WAITING", "LIMIT"]
    assert said[1].split()[-5:] == ["1.3", "0.5", "0.0", "3", "2"]
    penstock("pool", "history", "resource/bench", "--since", "2026-01-01T00:00:00Z")
    assert "since=2026-01-01T00" in service.paths("GET")[-1]


def test_timings(penstock: Run, service: Service) -> None:
    said = penstock("job", "timings", service.add()).stdout
    assert "acquiring  58s" in said
    assert ["1", "bench", "bench", "2m", "27s", "57s"] in [line.split() for line in said.splitlines()]
    assert json.loads(penstock("job", "timings", "j1", "--json").stdout)["held"] == HELD


@pytest.mark.parametrize("words", [("job", "timings", "--help"), ("job", "--help")])
def test_timings_promise_a_cost_only_if_the_api_gives_one(penstock: Run, words: tuple[str, ...]) -> None:
    (said,) = [line for line in penstock(*words).stdout.splitlines() if "how long each phase" in line]
    given = json.loads(document())["components"]["schemas"]["TimingsView"]["properties"]
    assert ("cost" in said) == ("cost" in given)


def test_cost(penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    said = penstock("job", "cost", service.add()).stdout
    lines = [line.split() for line in said.splitlines()]
    assert ["total", "1.824330", "EUR", "so", "far"] in lines
    assert ["unused", "0.564000", "EUR", "of", "it"] in lines
    assert ["resources", "1.760000", "EUR"] in lines
    assert ["final", "after", "2026-01-01T10:07:30Z"] in lines
    assert ["db", "bench", "44m", "14m", "1.760000", "0.560000"] in lines
    assert json.loads(penstock("job", "cost", "j1", "--json").stdout) == COST
    monkeypatch.setitem(COST, "is_final", True)
    monkeypatch.setitem(COST, "final_after", None)
    monkeypatch.setitem(COST, "charges", [])
    said = penstock("job", "cost", "j1").stdout
    assert "so far" not in said
    assert "final after" not in said
    assert "held" not in said


def test_costs_are_added_up(penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    said = penstock("cost").stdout.splitlines()
    assert said[0].split()[:4] == ["OWNER", "JOBS", "TOTAL", "OF"]
    assert said[1].split()[:4] == ["ada", "3", "12.500000", "2.000000"]
    days = penstock("cost", "--by", "day", "--since", "2026-01-31T10:00:00Z", "--owner", "oxide:hubris")
    assert days.stdout.startswith("DAY ")
    assert service.paths("GET") == [
        "/v1/costs?by=owner",
        "/v1/costs?by=day&since=2026-01-31T10%3A00%3A00.000%2B00%3A00&owner=oxide%3Ahubris",
    ]
    assert json.loads(penstock("cost", "--json").stdout) == SUMS["items"]
    monkeypatch.setitem(SUMS, "items", [])
    assert "no costs from 2026-01-01 to 2026-01-31" in penstock("cost").stderr
    assert "budget" not in penstock("cost").stderr
    budget = {"owner": "ada", "budget": "20.000000", "spent": "12.500000", "currency": "EUR", "since": "2026-01-01"}
    monkeypatch.setitem(SUMS, "budget", budget | {"is_near": False})
    assert "the budget of ada: 12.500000 of 20.000000 EUR since 2026-01-01" in penstock("cost").stderr
    assert "[prices]" not in penstock("cost").stderr
    monkeypatch.setitem(SUMS, "is_counted", False)
    assert "this site has no [prices]" in penstock("cost").stderr
    assert penstock("cost", "--by", "week").exit_code == 2


def test_show_says_the_cost_of_a_job_that_has_settled(penstock: Run, service: Service) -> None:
    assert "cost" not in penstock("job", "show", service.add(end="never")).stdout
    done = service.add()
    service.jobs[done].read = 99
    assert "1.824330 EUR, of which 0.564000 unused" in penstock("job", "show", done).stdout


def test_outputs(penstock: Run, service: Service) -> None:
    assert json.loads(penstock("job", "outputs", service.add(), "--json").stdout) == [OUTPUT]
    assert "/work/out/log.txt  38.0 KiB" in penstock("job", "outputs", "j1").stdout


def test_show_pool_says_why_its_units_fail(penstock: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    setback = {"count": 2, "until": "2026-01-01T10:00:00Z", "why": "its agent did not say hello"}
    monkeypatch.setitem(POOL, "setback", setback)
    said = " ".join(penstock("pool", "show", "resource/bench").stdout.split())
    assert "2 came to nothing, the last as its agent did not say hello; tried again from 2026-01-01T10:00:00Z" in said


def test_show_pool_says_when_more_jobs_wait_than_it_shows(
    penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "jobs wait" not in penstock("pool", "show", "resource/bench").stdout
    monkeypatch.setitem(POOL, "waiting", 1201)
    service.queue = [{"position": place, "job": f"j{place}", "since": "2026-01-01T10:00:00Z"} for place in (1, 2)]
    assert "1201 jobs wait; the first 2 are shown" in penstock("pool", "show", "resource/bench").stdout


def test_show_pool_says_why_a_slot_does_not_come_back(penstock: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "resource r1 is held by root until 2026-01-01T10:00:00Z: a look"
    assert "KEPT BECAUSE" not in penstock("pool", "show", "resource/bench").stdout
    monkeypatch.setitem(SLOTS[0], "kept", {"says": said})
    shown = " ".join(penstock("pool", "show", "resource/bench").stdout.split())
    assert "KEPT BECAUSE" in shown
    assert said in shown


def test_show_pool_says_how_a_host_is_switched(penstock: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    host = {"is_there": False, "since": None}
    monkeypatch.setitem(SLOTS[0], "host", host)
    assert "POWER" not in penstock("pool", "show", "resource/bench").stdout
    monkeypatch.setitem(host, "power", "being switched on since 2026-01-01 10:00:00Z")
    shown = " ".join(penstock("pool", "show", "resource/bench").stdout.split())
    assert "POWER" in shown
    assert "away" in shown
    assert "being switched on since 2026-01-01 10:00:00Z" in shown


def test_pools(penstock: Run, service: Service) -> None:
    assert json.loads(penstock("pool", "list", "--json").stdout) == [POOL]
    assert "bench-1" in penstock("pool", "show", "resource/bench").stdout
    assert "the limit is 3" in penstock("pool", "resize", "resource/bench", "3").stdout
    assert penstock("pool", "pause", "resource/bench").stdout == "resource/bench is paused\n"
    assert penstock("pool", "resume", "resource/bench").exit_code == 0
    assert [body for _, body in changes(service)] == [{"limit": 3}, {}, {}]


def changes(service: Service) -> list[tuple[str, object]]:
    """What the service was asked to change: the paths and bodies."""
    return [(path, body) for method, path, _, body in service.asked if method != "GET"]


def test_pools_are_changed_with_a_reason(penstock: Run, service: Service) -> None:
    for verb, *more in (("resize", "3"), ("pause",), ("resume",)):
        assert penstock("pool", verb, "resource/bench", *more, "--reason", "it is rewired").exit_code == 0
    assert changes(service) == [
        ("/v1/pools/resource/bench/limit", {"limit": 3, "reason": "it is rewired"}),
        ("/v1/pools/resource/bench/pause", {"reason": "it is rewired"}),
        ("/v1/pools/resource/bench/resume", {"reason": "it is rewired"}),
    ]


def test_show_pool_says_who_paused_it_and_who_set_its_limit(penstock: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert " by " not in penstock("pool", "show", "resource/bench").stdout
    by_hand = {"by": "ada", "at": "2026-01-01T10:00:00Z", "reason": ""}
    monkeypatch.setitem(POOL, "pause", by_hand | {"reason": "it is rewired"})
    monkeypatch.setitem(POOL, "resized", by_hand)
    lines = penstock("pool", "show", "resource/bench").stdout.splitlines()
    assert "paused by ada 2026-01-01T10:00:00Z: it is rewired" in lines
    assert "limit 1 set by ada 2026-01-01T10:00:00Z" in lines


def test_a_queue_says_when_a_job_may_be_granted_what_it_waits_for(penstock: Run, service: Service) -> None:
    waits = {"position": 1, "job": "j1", "attempt": 1, "since": "2026-01-01T10:00:00Z", "priority": 0}
    service.queue = [waits | {"expected": None}]
    assert "EXPECTED" not in penstock("pool", "show", "resource/bench").stdout
    service.queue = [waits | {"expected": "2026-01-01T11:00:00Z"}]
    shown = penstock("pool", "show", "resource/bench").stdout
    assert "EXPECTED" in shown
    assert "2026-01-01T11:00:00Z" in shown


def test_a_queue_that_goes_by_turns_says_so(penstock: Run, service: Service) -> None:
    waits = {"position": 1, "job": "j1", "attempt": 1, "since": "2026-01-01T10:00:00Z", "priority": 0, "turn": None}
    service.queue = [waits]
    assert "TURN" not in penstock("pool", "show", "resource/bench").stdout
    service.queue = [waits, waits | {"position": 2, "turn": "2026-01-03T10:00:00Z"}]
    shown = penstock("pool", "show", "resource/bench").stdout
    assert "TURN" in shown
    assert "2026-01-03T10:00:00Z" in shown
    assert "served by priority, then by turn" in shown


def test_shares(penstock: Run, service: Service) -> None:
    shown = [line.split() for line in penstock("share", "list").stdout.splitlines()]
    assert shown[1:] == [["alice", "1", "25%", "90%", "1.5"], ["oxide:hubris", "3", "75%", "10%", "0.2"]]
    assert json.loads(penstock("share", "list", "--json").stdout) == SHARES
    service.half_life = None
    assert "this site has no [shares]" in penstock("share", "list").stderr
    assert json.loads(penstock("share", "list", "--json").stdout) == []


def test_cancel_and_retry(penstock: Run, service: Service) -> None:
    job = service.add("never")
    assert penstock("job", "cancel", job, "--wait").stdout == "job j1 cancelled: cancelled by alice\n"
    assert penstock("job", "retry", job).stdout == "j2\n"
    assert json.loads(penstock("job", "retry", job, "--json").stdout) == {"id": "j3"}
    assert penstock("job", "retry", job, "--after", "build=j2", "--after", "lint=j3").stdout == "j4\n"
    asked = [(body, headers) for _, path, headers, body in service.asked if path.endswith("/retry")]
    assert [body for body, _ in asked] == [{}, {}, {"dependencies": {"build": "j2", "lint": "j3"}}]
    assert len({headers["Idempotency-Key"] for _, headers in asked}) == 3
    assert "is not NAME=VALUE" in penstock("job", "retry", job, "--after", "build").stderr


def test_a_job_gets_more_time(penstock: Run, service: Service) -> None:
    job = service.add("never")
    assert penstock("job", "extend", job, "--for", "2h").stdout == "job j1 may run for 30m\n"
    assert service.asked[-1][1:2] + service.asked[-1][3:] == ("/v1/jobs/j1/extend", {"for": 7200})


def test_site(penstock: Run) -> None:
    header, default, lab, *_ = penstock("target", "list").stdout.splitlines()
    assert header.split() == ["NAME", "FACTORY", "REDIRECT", "MACHINES", "LIMIT", "PRIVILEGE"]
    assert (default.split(), lab.split()) == (
        ["default", "-", "lab", "-", "-", "-"],
        ["lab", "here", "-", "-", "4", "-"],
    )
    assert "redirect  lab" in penstock("target", "show", "default").stdout
    assert json.loads(penstock("target", "list", "--json").stdout)[0]["settings"]["redirect"] == "lab"


def test_token_is_printed_alone(penstock: Run, service: Service) -> None:
    assert penstock("token", "create", "--user", "bob", "--expires", "90d").stdout == "token-of-bob\n"
    assert service.asked[0][3] == {"name": "", "scopes": [], "expires_in": 90 * 86400}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ([], {"name": "", "scopes": []}),
        (["--expires", "never", "--name", "ci", "--scope", "read", "--scope", "submit:oxide:hubris"],
         {"name": "ci", "scopes": ["read", "submit:oxide:hubris"], "expires_in": "never"}),
    ],
)  # fmt: skip
def test_a_token_of_ones_own_is_asked_for(penstock: Run, service: Service, given: list[str], sent: object) -> None:
    assert penstock("token", "create", *given).stdout == "token-of-alice\n"
    assert service.asked[-1][3] == sent


def test_a_token_is_not_sent_to_be_revoked(penstock: Run, service: Service) -> None:
    """SEC-1: what is pasted is read here, and only its id is sent."""
    id = ulid(datetime(2026, 1, 1, tzinfo=UTC), b"0123456789")
    secret = token_secret(TokenKind.OPERATOR, id, "s" * 43)
    for given in (secret, id):
        assert penstock("token", "revoke", given).stdout.startswith(f"token {id} of alice is revoked")
    assert service.paths("DELETE") == [f"/v1/tokens/{id}"] * 2
    cut = penstock("token", "revoke", secret[:-1])
    assert (cut.exit_code, "no whole token" in cut.stderr) == (2, True)
    assert len(service.paths("DELETE")) == 2


def test_openapi_needs_no_token(penstock: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_TOKEN")
    assert json.loads(penstock("openapi").stdout) == {"openapi": "3.1.0"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(penstock: Run, shell: str) -> None:
    assert "_PENSTOCK_COMPLETE" in penstock("completion", shell).stdout
