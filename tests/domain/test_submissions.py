"""What is remembered of requests is found by who asked, and forgotten in time."""

from penstock.domain.jobs.submissions import SUBMISSION_KEPT, Submission, submission_key
from penstock.domain.logs.logs import WATCH_WINDOW, Watch, watch_key
from tests.domain.helpers import NOW


def test_a_submission_is_found_by_its_owner_and_key_only() -> None:
    kept = Submission(owner="ada", key_digest="k", request_digest="r", job="J1", time=NOW)
    assert kept.key == submission_key("ada", "k")
    assert kept.key != submission_key("bob", "k")
    assert kept.expiry == NOW + SUBMISSION_KEPT


def test_a_watch_is_forgotten_when_it_ends() -> None:
    watch = Watch(job="J1", until=NOW + WATCH_WINDOW)
    assert watch.key == watch_key("J1")
    assert watch.expiry == NOW + WATCH_WINDOW
