"""What errors mean, row by row."""

from __future__ import annotations

import re

import pytest
from libcloud.common.exceptions import BaseHTTPError, RateLimitReachedError
from libcloud.common.google import (
    GoogleAuthError,
    GoogleBaseError,
    QuotaExceededError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from libcloud.common.types import InvalidCredsError, LibcloudError, MalformedResponseError
from requests.exceptions import ConnectTimeout

from penstock.drivers.factories.libcloud.alternatives import Reach
from penstock.drivers.factories.libcloud.errors import BY_STATUS, BY_WORDS, classify, meaning_of_words
from penstock.kernel.errors import DriverError, Misconfigured, NoCapacity, QuotaReached, RateLimited, Unknown

SAID = [
    "rateLimitExceeded: Rate Limit Exceeded",
    "[TooManyRequests] The request is being throttled.",
    "The zone 'z' does not have enough resources available to fulfill the request.",
    "[SkuNotAvailable] The requested VM size is currently not available in location 'westeurope'.",
    "[ZonalAllocationFailed] Allocation failed. We do not have sufficient capacity for the requested VM size.",
    "No valid host was found. There are not enough hosts available.",
    "Sorry, we are out of stock in this region",
    "403 Forbidden Quota exceeded for instances: Requested 1, but already used 10 of 10 instances",
    "403 Forbidden Quota exceeded for cores, ram: Requested 8, but already used 60 of 64 cores",
    "creating this/these droplet(s) will exceed your droplet limit",
    "[QuotaExceeded] Put on Virtual Machine Instance resulted in an error",
    "[OperationNotAllowed] Operation could not be completed as it results in exceeding approved standardDSv3 Cores.",
    "Your account has reached its server quota: it is exceeded",
    "[SubnetIsFull] Subnet workers does not have enough capacity for 1 IP addresses.",
    "Could not find specified endpoint",
    "The resource 'projects/p/zones/z/instances/i' already exists",
]


@pytest.mark.parametrize(("row", "said"), list(zip(BY_WORDS, SAID, strict=True)), ids=[row.words for row in BY_WORDS])
def test_every_row_fits_what_its_source_says(row: object, said: str) -> None:
    meaning = next(each.meaning for each in BY_WORDS if each is row)
    assert meaning_of_words(said) == meaning
    first = next(each for each in BY_WORDS if each.meaning == meaning_of_words(said))
    assert first.meaning == meaning
    assert all(each.source for each in BY_WORDS)


@pytest.mark.parametrize("row", range(len(BY_WORDS)))
def test_no_row_is_needless(row: int) -> None:
    """Without it, its own example would mean something else, or nothing."""
    others = [each for at, each in enumerate(BY_WORDS) if at != row]
    found = next((each.meaning for each in others if re.search(each.words, SAID[row], re.I)), None)
    assert found != BY_WORDS[row].meaning


@pytest.mark.parametrize("status", BY_STATUS)
def test_every_status(status: int) -> None:
    assert classify("x", BaseHTTPError(status, "words of no row")).meaning == BY_STATUS[status]


def google(value: object, status: int, code: str) -> Exception:
    made: Exception = GoogleBaseError(value, status, code)
    return made


RAISED: list[tuple[Exception, type[DriverError], Reach | None]] = [
    (InvalidCredsError(), Misconfigured, None),
    (LibcloudError("No valid host was found"), NoCapacity, Reach.OFFER),
    (MalformedResponseError("Failed to parse JSON", body="<html>"), Unknown, None),
    (RateLimitReachedError(headers={"retry-after": "5"}), RateLimited, None),
    (BaseHTTPError(413, "over limit", {"Retry-After": "9"}), RateLimited, None),
    (BaseHTTPError(413, "over limit"), QuotaReached, Reach.ALL),
    (BaseHTTPError(400, "[SkuNotAvailable] not in this location"), NoCapacity, Reach.OFFER),
    (BaseHTTPError(404, "Image not found"), Misconfigured, None),
    (BaseHTTPError(502, "bad gateway"), Unknown, None),
    (google({"message": "no room"}, 200, "ZONE_RESOURCE_POOL_EXHAUSTED"), NoCapacity, Reach.OFFER),
    (google("no room", 200, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"), NoCapacity, Reach.OFFER),
    (google({"message": "slow down"}, 403, "rateLimitExceeded"), RateLimited, None),
    (QuotaExceededError({"message": "Quota 'CPUS' exceeded."}, 200, "QUOTA_EXCEEDED"), QuotaReached, Reach.OFFER),
    (ResourceNotFoundError({"message": "no machine type"}, 404, "notFound"), Misconfigured, None),
    (ResourceExistsError({"message": "there is one"}, 409, "alreadyExists"), Unknown, None),
    (GoogleAuthError("cryptography library required for Service Account Authentication."), Misconfigured, None),
    (ConnectTimeout("timed out"), Unknown, None),
    (ConnectionResetError("reset"), Unknown, None),
    (ValueError("Must provide either ex_network or ex_nic"), Misconfigured, None),
    (TypeError("unexpected keyword"), Misconfigured, None),
    (Exception("words that nobody knows"), Unknown, None),
]


@pytest.mark.parametrize(("error", "kind", "reach"), RAISED, ids=[f"{type(e).__name__} {e}"[:50] for e, _, _ in RAISED])
def test_whatever_libcloud_raises(error: Exception, kind: type[DriverError], reach: Reach | None) -> None:
    failure = classify("create_node", error)
    assert (failure.meaning.kind, failure.meaning.reach) == (kind, reach)
    assert isinstance(failure.error(), kind)
    assert failure.is_unclear == (kind is Unknown)
    assert not classify("list_nodes", error).is_unclear


def test_only_what_is_in_no_table_is_counted() -> None:
    assert not classify("x", Exception("words that nobody knows")).meaning.is_known
    assert classify("x", BaseHTTPError(500, "oops")).meaning.is_known


@pytest.mark.parametrize(("told", "seconds"), [("5", 5), ("0", 30), ("soon", 30), ("99999", 3600)])
def test_the_pause_is_as_long_as_the_cloud_says_within_reason(told: str, seconds: int) -> None:
    assert classify("x", BaseHTTPError(429, "slow down", {"retry-after": told})).seconds == seconds
