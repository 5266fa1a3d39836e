"""What jobs hold in a local cloud is given back before it ends."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from penstock.local import giveback
from penstock.local.state import LocalCloudError, Running

RUNNING = Running(url="http://127.0.0.1:1", token="t", pid=1, home="/x")


class Cloud:
    """Answers as a local cloud does: jobs end when they are cancelled, then what they held goes."""

    def __init__(self, *units: dict[str, Any]) -> None:
        self.units = list(units)
        self.asked: list[tuple[str, str]] = []

    def call(self, running: Running, method: str, path: str, body: Any = None) -> Any:
        assert running is RUNNING
        if method == "POST":
            self.asked.append((path, (body or {}).get("reason", "")))
            return self._act(path.split("/"))
        if path == "/v1/pools":
            return {"items": [{"pool": "resource/bench"}, {"pool": "target/here"}]}
        if path == "/v1/users":
            return {"items": [{"name": "ada"}, {"name": "bob"}]}
        if path.startswith("/v1/jobs?"):
            return {"items": [{}] * (100 if "owner=ada" in path else 2)}
        sort, _, page = path.removeprefix("/v1/").partition("s?page=")
        found = [each for each in self.units if each["id"].startswith(sort[0])]
        at = int(page or 0)
        return {"items": found[at : at + 1], "next": str(at + 1) if at + 1 < len(found) else None}

    def _act(self, path: list[str]) -> Any:
        if path[-1] == "pause":
            return {}
        if path[-1] == "cancel" and path[3] == "j-over":
            raise LocalCloudError("it has settled")
        for each in self.units:
            is_meant = path[3] in (each["job"], each["id"])
            if is_meant and not each["hold"] and each["state"] != "quarantined":
                each["state"] = "gone"
        return {}


def unit(id: str, state: str = "ready", job: str | None = None, *, held: bool = False) -> dict[str, Any]:
    of = {"type": "bench"} if id.startswith("r") else {"target": "here"}
    return {"id": id, "state": state, "job": job, "hold": {"by": "root"} if held else None, **of}


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giveback, "PAUSE", 0.0)


def test_an_idle_cloud_is_left_alone() -> None:
    cloud = Cloud(unit("w1", "gone"))
    assert giveback.give_back(cloud.call, RUNNING, pytest.fail) == []
    assert cloud.asked == []


def test_jobs_are_cancelled_and_what_is_idle_is_destroyed() -> None:
    cloud, said = Cloud(unit("r1", job="j1"), unit("r2", "idle", "j0"), unit("r3"), unit("w1", job="j1")), list[str]()
    assert giveback.give_back(cloud.call, RUNNING, said.append) == []
    assert cloud.asked == [
        ("/v1/pools/resource/bench/pause", ""),
        ("/v1/pools/target/here/pause", ""),
        ("/v1/jobs/j1/cancel", ""),
        ("/v1/resources/r2/recycle", "the local cloud goes down"),
        ("/v1/resources/r3/recycle", "the local cloud goes down"),
    ]
    assert said == ["ending job j1", "giving back resource r2", "giving back resource r3"]


def test_what_is_held_or_in_quarantine_is_not_waited_for() -> None:
    cloud = Cloud(unit("r1", "idle", held=True), unit("r2", "quarantined", "j1"))
    left = giveback.give_back(cloud.call, RUNNING, pytest.fail)
    assert list(map(str, left)) == [
        "resource r1 of bench: idle, held by an operator",
        "resource r2 of bench: quarantined",
    ]


def test_what_is_on_its_way_is_left_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(giveback.time, "monotonic", lambda: float(next(clock)))
    cloud = Cloud(unit("r1", "dirty", "j1"), unit("w1", "cleaning", "j1"))
    assert len(giveback.give_back(cloud.call, RUNNING, pytest.fail, seconds=3)) == 2
    assert len(giveback.contents(cloud.call, RUNNING)) == 1


def test_what_does_not_go_in_time_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(giveback.time, "monotonic", lambda: float(next(clock)))
    cloud, said = Cloud(unit("w1", job="j-over")), list[str]()
    (left,) = giveback.give_back(cloud.call, RUNNING, said.append, seconds=3)
    assert (left.id, said) == ("w1", ["ending job j-over"])


def test_a_cloud_that_does_not_answer() -> None:
    def call(*_: Any) -> Any:
        raise httpx.ConnectError("refused")

    with pytest.raises(LocalCloudError, match="does not answer: refused"):
        giveback.give_back(call, RUNNING, pytest.fail)


def test_what_is_in_it_is_counted() -> None:
    cloud = Cloud(unit("r1", job="j1"), unit("r2", "idle", "j0"), unit("w1", job="j1"))
    assert giveback.contents(cloud.call, RUNNING) == [
        "102 or more jobs with logs and files, 2 users, all tokens, the site's configuration",
        "1 job under way, to be cancelled now",
    ]
    assert len(giveback.contents(Cloud().call, RUNNING)) == 1
