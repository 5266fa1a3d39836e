"""What a page says is what the API says: random jobs are shown, and their states, names and times are read back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.browser import Console

STATES = ("waiting", "queued", "acquiring", "running", "settled")
OUTCOMES = ("succeeded", "failed", "cancelled", "errored")
NOW = datetime(2026, 1, 31, 10, tzinfo=UTC)

ids = st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26)
names = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), min_size=1, max_size=60)
moments = st.integers(0, 10**7).map(lambda seconds: (NOW - timedelta(seconds=seconds)).isoformat())


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """A job as the list has it, in any state that a job can be in."""
    state = draw(st.sampled_from(STATES))
    is_settled, has_run = state == "settled", state in ("running", "settled")
    times = {"submitted": draw(moments), "ready": None, "acquired": None}
    times |= {"started": draw(moments) if has_run else None, "settled": draw(moments) if is_settled else None}
    return {
        "id": draw(ids),
        "name": draw(names),
        "owner": draw(st.sampled_from(["ada", "oxide:hubris"])),
        "state": state,
        "outcome": draw(st.sampled_from(OUTCOMES)) if is_settled else None,
        "reason": draw(names) if is_settled else None,
        "waits_for": draw(names) if state in ("waiting", "queued") else None,
        "attempt": draw(st.integers(1, 5)),
        "target": "default",
        "target_resolved": draw(names),
        "times": times,
        "worker": None,
        "exit_code": None,
        "resources": [],
        "attempts": [],
        "dependencies": [],
        "tags": {},
        "priority": 0,
        "timeout": 60,
    }


READ = """() => [...document.querySelectorAll('main tbody tr')].map((row) => ({
    state: row.querySelector('.state').dataset.state,
    name: row.querySelector("a[href^='/jobs/']").textContent,
    id: row.querySelector("a[href^='/jobs/']").getAttribute('href').split('/').at(-1),
    submitted: row.querySelector('time').getAttribute('datetime'),
    said: row.textContent,
}))"""


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(jobs(), max_size=12, unique_by=lambda job: job["id"]))
def test_the_list_of_jobs_says_what_the_api_says(operator: Console, shown: list[dict[str, Any]]) -> None:
    page = operator.page
    page.unroute_all()
    body = json.dumps({"items": shown, "next": None})
    page.route("**/v1/jobs?*", lambda route: route.fulfill(body=body, content_type="application/json"))
    page.route("**/v1/jobs", lambda route: route.fulfill(body=body, content_type="application/json"))
    operator.open("/")
    found = page.evaluate(READ)
    assert [(row["id"], row["name"], row["submitted"]) for row in found] == [
        (job["id"], job["name"], job["times"]["submitted"]) for job in shown
    ]
    for row, job in zip(found, shown, strict=True):
        assert row["state"] == (job["outcome"] or job["state"])
        assert job["owner"] in row["said"]
        why = job["waits_for"] if job["outcome"] is None else job["reason"] if job["outcome"] != "succeeded" else ""
        assert (why or "") in row["said"]
