"""Every `penstock` command on every page is typed, in the page's order, to a real service on this machine.

What a page assumes is in tests/e2e/page_setups.py.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise

import pytest

from penstock.local import cloud
from penstock.local.state import StateFolder
from tests.e2e import page_setups
from tests.e2e.conftest import Local
from tests.e2e.pages import LINES, PAGES, Read, Typed, Words, replaced, typed_in

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("examples")]

Results = dict[str, Read | BaseException]


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """A cloud of its own: pages name what its site has, and disable its operators."""
    folder = tmp_path_factory.mktemp("examples")
    place = StateFolder(folder / "state")
    running = cloud.up(report=print, config=page_setups.SITE, tied=True, place=place)
    try:
        yield Local(running, folder, place.key(), place)
    finally:
        cloud.down(print, place)


@pytest.fixture(scope="module")
def read(request: pytest.FixtureRequest, mine: Local, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """All pages that tests ask for, read at once."""
    chosen = {each.callspec.params.get("page") for each in request.session.items if hasattr(each, "callspec")}
    folder = tmp_path_factory.mktemp("pages")
    template = page_setups.template(tmp_path_factory.mktemp("template"))
    return page_setups.READER.read(mine, folder, template, chosen & set(PAGES))


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_do_what_it_says(page: str, read: Results) -> None:
    """They exit with 0, or with the code that the page says, and none is left out that is not known to be."""
    found = read[page]
    if isinstance(found, BaseException):
        raise found
    wrong = "\n".join(map(told, (each for each in found.typed if not is_right(page, each))))
    assert not wrong, f"{page} (what it assumes is in tests/e2e/page_setups.py):\n{wrong}"
    left = [each for each in typed_in(page) if each not in {line.line for line in found.typed}]
    assert [each for each in left if not each.startswith(tuple(page_setups.LEFT_OUT))] == []
    assert not found.unused, f"tests/e2e/page_setups.py replaces what {page} does not have: {found.unused}"


def is_right(page: str, typed: Typed) -> bool:
    """Whether a command ended as its page says, and printed that."""
    code, _ = page_setups.CODES.get((page, typed.line), (0, ""))
    return typed.code == code and page_setups.SAYS.get(typed.line, "") in typed.said


def told(typed: Typed) -> str:
    """What was typed, and what came of it."""
    return f"{typed.line}\n  was typed: {typed.text}\n  exit code: {typed.code}\n{typed.said}"


def deployed() -> list[str]:
    """All options that pages give to a deployment."""
    lines = [shlex.split(each.text) for each in LINES if each.text.startswith("penstock deploy")]
    return [value for words in lines for word, value in pairwise(words) if word == "-c"]


def test_the_options_of_all_deployments_are_accepted(mine: Local) -> None:
    """By the stack, and by what stands for CloudFormation."""
    given = [replaced(each, page_setups.DEPLOYED, set()) for each in deployed()]
    tried = {name: each for each in given if (name := each.partition("=")[0]) not in page_setups.FETCHED}
    done = mine.cli("deploy", "--diff", *(word for each in tried.values() for word in ("-c", each)))
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("AWS::SNS::Subscription", "AWS::Events::Rule", "SnapStart", "VpcConfig"):
        assert kind in done.stdout


def test_tables_have_nothing_that_no_page_has() -> None:
    texts = [each.text for each in LINES]
    for begins, why in page_setups.LEFT_OUT.items():
        assert why
        assert any(text.startswith(begins) for text in texts), begins
    for page, line in page_setups.CODES:
        assert line in typed_in(page), (page, line)
    assert set(page_setups.FETCHED) <= {each.partition("=")[0] for each in deployed()}
    assert all(any(placeholder in each for each in deployed()) for placeholder in page_setups.DEPLOYED)
    assert set(page_setups.SAYS) <= set(texts)
    assert {*page_setups.SETUPS, *page_setups.LAST} <= set(PAGES)


def test_a_wrong_command_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    page, line = "docs/users/waiting.md", "penstock job why JOB"
    assert is_right(page, Typed(line, line, 0, ""))
    assert not is_right(page, Typed(line, line, 2, "error: there is no such job"))
    monkeypatch.setitem(page_setups.CODES, (page, line), (2, "the page says so"))
    assert is_right(page, Typed(line, line, 2, ""))
    assert not is_right(page, Typed(line, line, 0, ""))
    said, text = next(iter(page_setups.SAYS.items()))
    assert is_right(page, Typed(said, said, 0, f"... {text}"))
    assert not is_right(page, Typed(said, said, 0, "something else"))


def test_the_longest_placeholder_counts() -> None:
    used: set[str] = set()
    words: Words = {"JOB": "01K", "cancel JOB": lambda: "cancel 02K", "01…": "03K", "w-01…": "w-04K", "ID": "05K"}
    assert replaced("cancel JOB; show JOB JOB1 w-01… 01…", words, used) == "cancel 02K; show 01K JOB1 w-04K 03K"
    assert used == {"JOB", "cancel JOB", "01…", "w-01…"}
