"""How tasks end, and what is known of them then. [UNIT-1] [UNIT-2] [JOB-2]"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from penstock.domain.units.units import CleanProof
from penstock.drivers.factories.fargate.factory import LISTING_LAG
from penstock.kernel.errors import Misconfigured, Unsatisfiable
from penstock.ports import NotYet, Ready, ThingsDriver
from tests.fargate.fake import HOUR, INTERRUPTED, Ecs
from tests.fargate.helpers import HERE, IMAGE, MORE, NOW, OTHER, OWN, WORKER, Desk, clean, factory, only, order
from tests.played import Crash


def test_a_task_is_stopped_and_waited_for(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    assert desk.destroy() == NotYet(5, "its task is stopping", notes={"tasks": [only(ecs).id]})
    assert list(factory(ecs).list()) == [], "ECS ends it, whatever anybody does"
    ecs.now += 10
    proof = desk.destroy()
    assert isinstance(proof, CleanProof)
    assert (proof.lag, only(ecs).id in proof.checked, HERE in proof.checked) == (0, True, False)


@pytest.mark.parametrize("has_notes", [True, False])
def test_one_that_is_stopping_is_not_gone(ecs: Ecs, desk: Desk, has_notes: bool) -> None:
    """UNIT-2: its container runs on for half a minute, and ECS lists it no more by its worker."""
    ecs.dying = 60
    desk.create()
    desk.notes = desk.notes if has_notes else {}
    ecs.crashes["StopTask", "after"] = 1
    with pytest.raises(Crash):
        desk.destroy()
    assert isinstance(desk.destroy(), NotYet)
    assert isinstance(desk.destroy(), NotYet)
    ecs.now += 60
    assert isinstance(desk.destroy(), CleanProof)


def test_one_that_is_interrupted_is_not_gone_either(ecs: Ecs, desk: Desk) -> None:
    ecs.dying = 120
    desk.create()
    desk.notes = {}
    ecs.end(only(ecs).arn, "SpotInterruption", INTERRUPTED)
    assert isinstance(desk.destroy(), NotYet)
    assert "StopTask" not in [name for name, _ in ecs.calls]


def test_what_is_not_listed_may_still_come(ecs: Ecs, desk: Desk) -> None:
    ecs.lag = 200
    desk.create()
    proof = desk.destroy()
    assert isinstance(proof, CleanProof)
    assert proof.lag == LISTING_LAG
    ecs.now += 200
    clean(desk)
    assert list(ecs.alive()) == []


def test_what_ended_long_ago_is_gone(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    ecs.end(only(ecs).arn, "EssentialContainerExited", "Essential container in task exited")
    ecs.now += HOUR + 60
    assert clean(desk).lag == LISTING_LAG


def test_a_stray_without_notes_is_found_among_all_that_stopped(ecs: Ecs, desk: Desk) -> None:
    for worker in (*MORE, OTHER):
        desk.create(worker)
        clean(desk, worker)
    desk.create()
    clean(factory(ecs))
    assert list(ecs.alive()) == []


def test_nothing_of_anybody_elses_is_listed_or_touched(ecs: Ecs, desk: Desk) -> None:
    factory(ecs, site="Penstock.us-east-1").create(order())
    factory(ecs, "other").create(order(OTHER))
    assert list(factory(ecs).list()) == []
    assert clean(factory(ecs)).lag == LISTING_LAG
    assert len(list(ecs.alive())) == 2
    clean(factory(ecs), OTHER)
    assert [each.worker for each in ecs.alive()] == [WORKER], "also of a factory that was renamed"


def test_twins_both_go(ecs: Ecs, desk: Desk) -> None:
    """A launch whose answer was lost, and that was repeated with other settings."""
    ecs.lag = 30
    ecs.crashes["RunTask", "after"] = 1
    with pytest.raises(Crash):
        desk.create()
    desk.more = {"tags": {"team": "tools"}}
    desk.create()
    assert ecs.made() == {WORKER: 2}
    ecs.now += 30
    clean(desk)
    assert list(ecs.alive()) == []


def test_one_that_is_gone_before_it_is_stopped(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    ecs.fail("StopTask", "InvalidParameterException", "The referenced task was not found.")
    assert isinstance(desk.destroy(), NotYet)
    ecs.fail("StopTask", "InvalidParameterException", "something else")
    with pytest.raises(Misconfigured):
        desk.destroy()


def test_a_cluster_that_there_is_not(ecs: Ecs) -> None:
    ecs.cluster = "elsewhere"
    with pytest.raises(Misconfigured, match="Cluster not found"):
        factory(ecs).create(order())


class TestImages:
    """What comes of an image that only a job names."""

    def test_a_job_waits_for_its_own_image(self, ecs: Ecs, desk: Desk) -> None:
        ecs.boot = 60
        assert isinstance(desk.create(options={"image": OWN}), NotYet)
        assert isinstance(desk.create(options={"image": OWN}), NotYet)
        ecs.now += 60
        assert isinstance(desk.create(options={"image": OWN}), Ready)
        assert ecs.made() == {WORKER: 1}
        assert isinstance(desk.create(OTHER), Ready), "nobody waits for the site's"
        desk.more = {"images": [IMAGE]}
        assert isinstance(desk.create(MORE[0], options={"image": IMAGE}), Ready), "also if a job names it"

    @pytest.mark.parametrize(
        "why",
        [
            "pull image manifest: manifest unknown",
            "ghcr.io/acme/rust: not found",
            "access denied",
            "no match for platform in manifest",
        ],
    )
    def test_one_that_cannot_be_had_fails_the_job(self, ecs: Ecs, desk: Desk, why: str) -> None:
        ecs.missing[OWN] = why
        assert isinstance(desk.create(options={"image": OWN}), NotYet)
        with pytest.raises(Unsatisfiable, match="cannot be had"):
            desk.create(options={"image": OWN})

    def test_a_registry_that_is_away_fails_nobody(self, ecs: Ecs, desk: Desk) -> None:
        ecs.missing[OWN] = "net/http: request canceled while waiting for connection"
        desk.create(options={"image": OWN})
        assert isinstance(desk.create(options={"image": OWN}), Ready)

    def test_the_sites_own_is_the_operators_business(self, ecs: Ecs, desk: Desk) -> None:
        ecs.missing[IMAGE] = "manifest unknown"
        assert isinstance(desk.create(), Ready)
        assert isinstance(desk.create(), Ready)
        assert "CannotPullContainerError: manifest unknown" in str(desk.at(WORKER).evidence(WORKER))

    def test_only_what_the_site_allows(self, ecs: Ecs, desk: Desk) -> None:
        """SEC-2: also if the site was changed after the job was accepted."""
        other = {"image": f"docker.io/evil/rust@sha256:{'ef' * 32}"}
        with pytest.raises(Unsatisfiable, match="does not let jobs name"):
            desk.create(options=other)
        with pytest.raises(Unsatisfiable, match="no services"):
            desk.create(options={"services": {"db": {"image": OWN}}})
        assert not ecs.tasks


class TestEvidence:
    """What people are told of a task."""

    def test_its_state_and_why_it_stopped(self, ecs: Ecs, desk: Desk) -> None:
        desk.create()
        said = str(desk.at(WORKER).evidence(WORKER))
        assert said.startswith(f"task {only(ecs).id} (FARGATE, eu-west-1a) is ")
        assert "no log_group" in said
        ecs.end(only(ecs).arn, "EssentialContainerExited", "Essential container in task exited")
        ecs.now += 60
        for driver in (desk.at(WORKER), factory(ecs)):
            said = str(driver.evidence(WORKER))
            assert "is STOPPED (EssentialContainerExited): Essential container in task exited" in said
        assert factory(ecs).evidence(OTHER) is None

    def test_the_end_of_its_log(self, ecs: Ecs, desk: Desk) -> None:
        desk.more = {"log_group": "/w", "execution_role": "arn:aws:iam::123456789012:role/pull"}
        desk.create()
        assert str(desk.at(WORKER).evidence(WORKER)).endswith("its log is empty")
        ecs.logs[f"penstock/worker/{only(ecs).id}"] = ["x" * 9000, "penstock: this is not the agent"]
        said = str(desk.at(WORKER).evidence(WORKER))
        assert said.endswith("penstock: this is not the agent")
        assert len(said) < 8500


def test_everything_of_the_site_is_listed_for_the_diff(ecs: Ecs, desk: Desk) -> None:
    desk.create()
    factory(ecs, "older").create(order(OTHER))
    factory(ecs, site="Penstock.us-east-1").create(order(MORE[0]))
    driver = factory(ecs)
    assert isinstance(driver, ThingsDriver)
    found = [(each.kind, each.unit, each.made is not None) for each in driver.things()]
    assert found == [("task", WORKER, True), ("task", OTHER, True), ("task definition", "", False)]
    makers = [each.maker for each in driver.things()]
    assert makers[1] == makers[2] == f"sha256:{sha256(b'older').hexdigest()[:8]}"


def shares(scope: str, ecs: Any) -> bool:
    return factory(ecs).shares_scope(scope)


def test_a_region_is_shared(ecs: Ecs) -> None:
    assert shares("fargate/eu-west-1/spot", ecs)
    assert not shares("fargate/eu-west-10/spot", ecs)
    assert not shares("ec2/eu-west-1/all", ecs)
    assert clean(factory(ecs)).time > NOW
