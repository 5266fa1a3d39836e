"""Errors say what they are even when nobody adds a word."""

import pytest

from penstock.kernel import errors, limits


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (errors.PenstockError(), "Something went wrong."),
        (errors.Moved(), "The rows kept changing; the step will be tried again."),
        (errors.NoCapacity(), "The provider has no capacity for this now."),
        (errors.NoCapacity("no m8g in eu-west-1"), "no m8g in eu-west-1"),
        (errors.RateLimited(), "The provider asks us to slow down."),
    ],
)
def test_the_docstring_is_the_default_message(error: errors.PenstockError, message: str) -> None:
    assert str(error) == message


def test_an_error_without_any_words_is_silent() -> None:
    assert str(type("Mute", (errors.PenstockError,), {})()) == ""


@pytest.mark.parametrize(
    "name", ["RateLimited", "QuotaReached", "NoCapacity", "Unknown", "Unsatisfiable", "Misconfigured"]
)
def test_everything_that_a_driver_raises_is_a_driver_error(name: str) -> None:
    assert issubclass(getattr(errors, name), errors.DriverError)


def test_a_rate_limit_says_for_how_long() -> None:
    assert errors.RateLimited().seconds == 30
    slow = errors.RateLimited("slow", seconds=5, calls="RunInstances")
    assert (slow.seconds, slow.calls) == (5, "RunInstances")


@pytest.mark.parametrize("kind", [errors.QuotaReached, errors.NoCapacity])
def test_a_shortage_says_of_what(kind: type[errors.Short]) -> None:
    shortage = errors.Shortage("ec2/eu-west-1/spot", "no spot")
    assert kind().shortages == ()
    assert kind("none", [shortage]).shortages == (shortage,)
    assert kind.__base__ is errors.Short


def test_what_is_not_known_says_the_providers_word_for_it() -> None:
    assert errors.Unknown().code == ""
    assert errors.Unknown("what?", "Wat").code == "Wat"


def test_a_refusal_carries_status_code_sentence_and_faults() -> None:
    fault = errors.Fault("no", where="tags.x")
    refused = errors.Refused(422, "bad-site", "it cannot be applied", [fault])
    assert (refused.status, refused.code, str(refused), refused.faults) == (
        422,
        "bad-site",
        "it cannot be applied",
        (fault,),
    )


def test_what_is_missing_and_what_is_hidden_look_the_same() -> None:
    refused = errors.not_found("resource type", "bench")
    assert (refused.status, refused.code) == (404, "resource-type-not-found")
    assert refused.detail == "there is no resource type 'bench' that you may see"


@pytest.mark.parametrize("name", ["RateLimited", "QuotaReached", "Unknown", "Unsatisfiable", "Misconfigured"])
def test_what_a_driver_says_is_cut_where_rows_have_room_for_it(name: str) -> None:
    assert str(getattr(errors, name)("x" * 500_000)) == "x" * limits.DRIVER_TEXT_CHARS
