"""What an attacker sent again, or from elsewhere, who once saw a signed delivery of GitHub's. [SEC-2]"""

from __future__ import annotations

from dataclasses import replace

from penstock.domain.github.commits import MAX_TRIES
from penstock.domain.github.deliveries import Delivery
from penstock.kernel.rows import Replace
from penstock.usecases.github import webhook
from tests.github.conftest import app_key, rig
from tests.github.payloads import check_run, pull_request, push
from tests.github.rig import A, Rig, job

__all__ = ["app_key", "rig"]


def deliveries(rig: Rig) -> list[Delivery]:
    return [row for row in rig.twin.store.rows.values() if isinstance(row, Delivery)]


def test_a_delivery_under_another_id(rig: Rig) -> None:
    """GitHub signs the body, not the id: a body counts once."""
    rig.commit(A, build=job("build"))
    rig.say("push", push(A))
    (first,) = rig.jobs().values()
    rig.hello(first.id)
    rig.finish(first.id)
    rerun = check_run(rig.fake.shown("build"), "ada", "rerun")
    assert rig.hook("check_run", rerun, id="one", again=True) == "stored"
    rig.twin.run()
    jobs = len(rig.all_jobs())
    assert jobs == 2
    for id in ("another", "and-another"):
        assert rig.hook("check_run", rerun, id=id, again=True) == "known"
        rig.twin.run()
    assert len(rig.all_jobs()) == jobs
    assert {row.id for row in deliveries(rig)} == {"d-1", "one"}


def test_a_press_of_which_nothing_came_counts_once_something_can(rig: Rig) -> None:
    """What GitHub sends of the second press is the same to the last byte: the check has not changed."""
    rig.commit(A, build=job("build"))
    rig.say("pull_request", pull_request(A))
    press = check_run(rig.fake.shown("penstock"), "carl", "approve")
    for id in ("one", "two"):
        assert rig.hook("check_run", press, id=id, again=True) == "stored"
        rig.twin.run()
        assert rig.delivery(id).outcome == "ignored: carl may not write to oxide/hubris"
    assert rig.all_jobs() == []
    rig.repo.rights |= {"carl": "write"}
    assert rig.hook("check_run", press, id="three", again=True) == "stored"
    rig.twin.run()
    assert rig.delivery("three").outcome == "approved by carl"
    assert rig.hook("check_run", press, id="four", again=True) == "known", "a press that had an effect counts once"


def test_a_press_that_was_given_up_counts_when_it_comes_again(rig: Rig) -> None:
    rig.say("pull_request", pull_request(A))
    press = check_run(rig.fake.shown("penstock"), "ada", "approve")
    assert rig.hook("check_run", press, id="one", again=True) == "stored"
    was = rig.delivery("one")
    assert rig.on.store.commit([Replace(was, replace(was, tries=MAX_TRIES))])
    rig.twin.run()
    assert rig.delivery("one").outcome == "given up"
    assert rig.hook("check_run", press, id="two", again=True) == "stored"
    rig.twin.run()
    assert rig.delivery("two").outcome == "approved by ada"


def test_a_press_that_two_functions_processed_led_to_what_the_first_says(rig: Rig) -> None:
    """The second finds nothing left to approve: that is no press of which nothing came."""
    rig.say("pull_request", pull_request(A))
    press = check_run(rig.fake.shown("penstock"), "ada", "approve")
    assert rig.hook("check_run", press, id="one", again=True) == "stored"
    read = rig.delivery("one")
    rig.twin.run()
    webhook.record(rig.on, read, "ignored: there is nothing to approve")
    assert rig.delivery("one").outcome == "approved by ada"
    assert rig.hook("check_run", press, id="two", again=True) == "known"


def test_a_press_that_is_processed_late_forgets_no_later_one(rig: Rig) -> None:
    rig.say("pull_request", pull_request(A))
    press = check_run(rig.fake.shown("penstock"), "carl", "approve")
    assert rig.hook("check_run", press, id="one", again=True) == "stored"
    rig.twin.run()
    assert rig.hook("check_run", press, id="two", again=True) == "stored"
    webhook.record(rig.on, rig.delivery("one"), "ignored: carl may not write to oxide/hubris")
    assert rig.hook("check_run", press, id="three", again=True) == "known"


def test_a_push_of_which_nothing_came_is_still_known(rig: Rig) -> None:
    """Only a press may come twice with the same payload: a push has its commits."""
    body = {**push(A), "repository": {**push(A)["repository"], "full_name": "other/place"}}
    assert rig.hook("push", body, id="one", again=True) == "stored"
    rig.twin.run()
    assert rig.delivery("one").outcome.startswith("ignored")
    assert rig.hook("push", body, id="two", again=True) == "known"
    assert [row.id for row in deliveries(rig)] == ["one"]


def test_a_delivery_written_in_another_order(rig: Rig) -> None:
    """An order of keys, or spaces, cannot be changed without the secret; but missed deliveries are read from lists."""
    body = push(A)
    assert rig.hook("push", body, again=True) == "stored"
    assert rig.hook("push", dict(reversed(body.items())), again=True) == "known"
    assert len(deliveries(rig)) == 1


def test_the_same_delivery_again_is_taken_again(rig: Rig) -> None:
    """GitHub repeats a delivery under its own id, whose message may have been lost."""
    body = push(A)
    assert rig.hook("push", body, id="one", again=True) == "stored"
    rig.twin.queues.messages.clear()
    assert rig.hook("push", body, id="one", again=True) == "known"
    rig.twin.run()
    assert rig.delivery("one").outcome == f"jobs of {A[:12]}"
