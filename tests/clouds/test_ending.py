"""A worker is gone when nothing of it is listed, and not before. [UNIT-1] [UNIT-2]"""

from __future__ import annotations

from datetime import timedelta

import pytest
from libcloud.common.exceptions import BaseHTTPError
from libcloud.compute.types import NodeState

from penstock.domain.units.units import CleanProof
from penstock.kernel.errors import Misconfigured, Unknown
from penstock.ports import NotYet, Ready
from tests.clouds.fake import Books
from tests.clouds.helpers import KEY, NOW, WORKER, clean, factory, order


@pytest.fixture
def books() -> Books:
    made = Books()
    assert isinstance(factory(made).create(order()), Ready)
    return made


def test_there_is_no_proof_while_it_is_listed(books: Books) -> None:
    books.dying = 5
    late = NOW + timedelta(hours=1)
    for _ in range(3):
        assert isinstance(factory(books).destroy(WORKER, late), NotYet)
        assert list(factory(books).list()) == [WORKER]
    proof = factory(books).destroy(WORKER, late)
    assert isinstance(proof, CleanProof)
    assert (proof.by, proof.time) == ("libcloud", late)
    assert WORKER in proof.checked


def test_who_lists_nothing_says_that_lists_lag() -> None:
    books = Books(lag=1)
    factory(books).create(order())
    proof = factory(books, lag=90).destroy(WORKER, NOW)
    assert isinstance(proof, CleanProof)
    assert (proof.lag, len(books.ours)) == (90, 1)
    assert isinstance(factory(books).destroy(WORKER, NOW), NotYet)
    assert isinstance(factory(books).destroy(WORKER, NOW), CleanProof)
    assert books.ours == []


def test_a_machine_that_ended_meanwhile_counts_as_destroyed(books: Books) -> None:
    books.failing["destroy_node"] = [BaseHTTPError(404, "no such instance")]
    assert isinstance(factory(books).destroy(WORKER, NOW), NotYet)
    clean(factory(books))


def test_a_terminated_machine_that_is_listed_is_gone(books: Books) -> None:
    books.ours[0].state = NodeState.TERMINATED
    assert list(factory(books).list()) == []
    assert isinstance(factory(books).destroy(WORKER, NOW + timedelta(hours=1)), CleanProof)
    assert isinstance(factory(books).create(order()), Ready)
    assert len(books.ours) == 1


def test_a_stopped_machine_is_not_gone(books: Books) -> None:
    """Its agent powers it off; what it costs and holds goes on until somebody destroys it."""
    books.ours[0].state = NodeState.STOPPED
    assert list(factory(books).list()) == [WORKER]
    clean(factory(books))
    assert books.ours == []


@pytest.mark.parametrize("call", ["list_nodes", "destroy_node"])
def test_a_call_that_fails_is_no_proof(books: Books, call: str) -> None:
    books.failing[call] = [BaseHTTPError(502, "bad gateway")]
    with pytest.raises(Unknown):
        factory(books).destroy(WORKER, NOW + timedelta(hours=1))
    books.failing[call] = [BaseHTTPError(403, "Policy does not allow it")]
    with pytest.raises(Misconfigured):
        factory(books).destroy(WORKER, NOW + timedelta(hours=1))
    assert len(books.ours) == 1


def test_evidence_is_what_the_cloud_says(books: Books) -> None:
    books.ours[0].state = NodeState.ERROR
    books.ours[0].extra["fault"] = {"message": f"kernel panic {KEY}"}
    said = factory(books).evidence(WORKER)
    assert said is not None
    assert "is error: kernel panic" in said
    assert KEY not in said
    clean(factory(books))
    assert factory(books).evidence(WORKER) is None
