"""What a service written with the package answers, without a network: signatures, replays, routes, refusals. [SEC-2]"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from http.client import HTTPConnection
from threading import Thread
from typing import Any

import pytest

from penstock.drivers.http import protocol, serving
from penstock.drivers.http.protocol import BODY_BYTES, PAGE, WINDOW
from penstock.drivers.http.serving import Endpoint, Later, Refused, Reply, SeenRequests, server

SECRET, NEXT = "a secret of at least thirty-two characters", "another secret, as long as the one before"
NOW = 1_800_000_000


class Shelf:
    """A service that does as a test says."""

    def __init__(self, does: Callable[[], Any] = dict) -> None:
        self.does, self.asked = does, list[tuple[Any, ...]]()
        self.ids: list[str] = []

    def create(self, unit: str, order: Any) -> Any:
        return self._done("create", unit, order)

    def status(self, unit: str) -> Any:
        return self._done("status", unit)

    def clean(self, unit: str, lease: Any) -> Any:
        return self._done("clean", unit, lease)

    def destroy(self, unit: str, lease: Any) -> Any:
        return self._done("destroy", unit, lease)

    def list(self, owner: str, start: str) -> Iterable[str]:
        self._done("list", owner, start)
        return self.ids

    def _done(self, *what: Any) -> Any:
        self.asked.append(what)
        return self.does()


def ask(
    endpoint: Endpoint, method: str = "GET", target: str = "/resources/r-1", body: bytes = b"", **how: Any
) -> Reply:
    secret, at, request = how.get("secret", SECRET), str(how.get("at", NOW)), how.get("request", "id")
    path, _, query = target.partition("?")
    signature = protocol.sign_request(secret, method, path, query, at, request, body)
    headers = {"penstock-timestamp": at, "PENSTOCK-REQUEST": request, "Penstock-Signature": signature}
    return endpoint.answer(method, target, headers, body)


def is_signed(reply: Reply, secret: str = SECRET, request: str = "id") -> bool:
    return reply.headers.get("Penstock-Signature") == protocol.sign_answer(secret, reply.status, request, reply.body)


def endpoint(shelf: Shelf, *secrets: str, **how: Any) -> Endpoint:
    return Endpoint(shelf, *(secrets or (SECRET,)), **{"clock": lambda: NOW, **how})


@pytest.mark.parametrize(
    ("method", "target", "body", "asked"),
    [
        ("PUT", "/resources/r-1", b'{"fence": 3}', ("create", "r-1", {"fence": 3})),
        ("GET", "/penstock/resources/r-1", b"", ("status", "r-1")),
        ("GET", "/resources/of/resources/r%2F1", b"", ("status", "r/1")),
        ("POST", "/resources/r-1/clean", b'{"fence": 3}', ("clean", "r-1", {"fence": 3})),
        ("DELETE", "/resources/r-1?owner=a%2Fb&fence=7", b"", ("destroy", "r-1", {"owner": "a/b", "fence": 7})),
        ("DELETE", "/resources/r-1?owner=a", b"", ("destroy", "r-1", {"owner": "a", "fence": 0})),
        ("GET", "/resources?owner=a&limit=5&from=r-2", b"", ("list", "a", "r-2")),
        ("GET", "/resources?owner=a", b"", ("list", "a", "")),
    ],
)
def test_what_is_asked_is_done_and_its_answer_is_signed(
    method: str, target: str, body: bytes, asked: tuple[Any, ...]
) -> None:
    shelf = Shelf()
    reply = ask(endpoint(shelf), method, target, body)
    assert (reply.status, is_signed(reply), shelf.asked) == (200, True, [asked])
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.headers["Content-Length"] == str(len(reply.body))


@pytest.mark.parametrize(
    "call", ["PATCH /resources/r-1", "POST /resources/r-1", "PUT /resources", "PUT /resources/r-1/clean"]
)
def test_what_there_is_not_is_told_to_an_operator(call: str) -> None:
    shelf = Shelf()
    reply = ask(endpoint(shelf), *call.split())
    assert (reply.status, is_signed(reply), shelf.asked) == (405, True, [])


def test_a_stranger_is_told_nothing_that_is_signed() -> None:
    shelf = Shelf()
    reply = ask(endpoint(shelf), "DELETE", secret=NEXT)
    assert (reply.status, "Penstock-Signature" in reply.headers, shelf.asked) == (401, False, [])


@pytest.mark.parametrize("secret", [SECRET, NEXT])
def test_while_a_secret_is_replaced_both_are_good_and_answers_have_that_of_who_asks(secret: str) -> None:
    assert is_signed(ask(endpoint(Shelf(), SECRET, NEXT), secret=secret), secret)


@pytest.mark.parametrize("secrets", [(), ("hunter2",), (SECRET, "hunter2")])
def test_without_a_secret_that_is_one_there_is_no_door(secrets: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="at least 32"):
        Endpoint(Shelf(), *secrets)


@pytest.mark.parametrize("at", [NOW - WINDOW - 1, NOW + WINDOW + 1, "", "soon", "\u00b2", "1" * 5000])
def test_what_is_not_of_now_is_refused(at: int | str) -> None:
    shelf = Shelf()
    reply = ask(endpoint(shelf), "DELETE", at=at)
    assert (reply.status, is_signed(reply), shelf.asked) == (401, True, [])


@pytest.mark.parametrize("at", [NOW - WINDOW, NOW, NOW + WINDOW])
def test_what_is_of_now_is_done_once_whenever_it_comes_again(at: int) -> None:
    """It is known for as long as its time is good, at every second of it."""
    clock = iter([NOW, *range(NOW, NOW + 2 * WINDOW + 2)])
    shelf = Shelf()
    mine = endpoint(shelf, clock=lambda: next(clock))
    assert ask(mine, at=at).status == 200
    assert {ask(mine, at=at).status for _ in range(2 * WINDOW + 2)} == {401}
    assert len(shelf.asked) == 1


def test_what_was_seen_is_forgotten_when_nobody_could_send_it_again() -> None:
    seen = SeenRequests()
    assert all(seen.is_new(str(number), NOW + number) for number in range(2 * WINDOW + 10))
    assert len(seen._when) == 2 * WINDOW + 1


def test_several_processes_share_what_was_seen() -> None:
    shelf, seen = Shelf(), SeenRequests()
    one, other = endpoint(shelf, is_new=seen.is_new), endpoint(shelf, is_new=seen.is_new)
    assert (ask(one).status, ask(other).status, len(shelf.asked)) == (200, 401, 1)


def raising(error: Exception) -> Callable[[], Any]:
    def raises() -> Any:
        raise error

    return raises


def test_not_yet_is_said_with_when_to_ask_again() -> None:
    reply = ask(endpoint(Shelf(raising(Later(7, "the disks are wiped")))), "PUT")
    assert (reply.status, reply.headers["Retry-After"], is_signed(reply)) == (202, "7", True)
    assert json.loads(reply.body) == {"reason": "the disks are wiped"}


@pytest.mark.parametrize("later", [None, 30])
def test_a_refusal_is_a_problem(later: int | None) -> None:
    reply = ask(endpoint(Shelf(raising(Refused(503, "no-capacity", "none is left", later)))), "PUT")
    assert (reply.status, is_signed(reply), reply.headers.get("Retry-After")) == (503, True, later and str(later))
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert json.loads(reply.body) == {"type": "about:blank", "code": "no-capacity", "detail": "none is left"}


@pytest.mark.parametrize("body", [b"", b"{"])
def test_what_goes_wrong_inside_is_said_to_nobody_but_its_log(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR", serving.log.name)  # other tests of this process may have silenced all of penstock
    mine = endpoint(Shelf(raising(KeyError("the password"))))
    reply = ask(mine, "PUT", body=body)
    assert (reply.status, is_signed(reply), b"password" in reply.body) == (500, True, False)
    assert "the service failed on PUT /resources/r-1" in caplog.text
    assert ask(mine, "PUT", request="next").status == 500, "the next is answered all the same"


@pytest.mark.parametrize(("limit", "shown", "more"), [(2, 2, "r-2"), (3, 3, None), (10**6, 3, None)])
def test_a_list_is_given_page_by_page(limit: int, shown: int, more: str | None) -> None:
    shelf = Shelf()
    shelf.ids = ["r-0", "r-1", "r-2"]
    found = json.loads(ask(endpoint(shelf), "GET", f"/resources?owner=a&limit={limit}").body)
    assert found == {"units": [{"unit": each, "owner": "a"} for each in shelf.ids[:shown]], "next": more}


def test_a_page_has_a_most() -> None:
    shelf = Shelf()
    shelf.ids = [f"r-{number:04}" for number in range(PAGE + 5)]
    found = json.loads(ask(endpoint(shelf), "GET", f"/resources?owner=a&limit={10**6}").body)
    assert (len(found["units"]), found["next"]) == (PAGE, f"r-{PAGE:04}")


@pytest.mark.parametrize("length", [str(BODY_BYTES + 1), "-1", "\u00b2", "x"])
def test_nobody_can_have_it_read_without_end(length: str) -> None:
    shelf = Shelf()
    made = server(Endpoint(shelf, SECRET), 0)
    Thread(target=made.handle_request, daemon=True).start()
    connection = HTTPConnection("127.0.0.1", made.server_port, timeout=30)
    connection.putrequest("PUT", "/resources/r-1")
    connection.putheader("Content-Length", length)
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    made.server_close()
    assert shelf.asked == []
