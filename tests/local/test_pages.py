"""Which requests to the local cloud are for the console, and what it sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.console import headers
from penstock.local.pages import Pages, Reply, Request
from tests.local.conftest import CONSOLE, build_console

PAGE = "text/html,application/xhtml+xml,*/*;q=0.8"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return build_console(tmp_path / "web")


@pytest.fixture
def pages(folder: Path) -> Pages:
    return Pages(folder)


def ask(pages: Pages, path: str, method: str = "GET", accept: str = PAGE, query: str = "", **more: str) -> Reply | None:
    """The console's reply, if it is the console's."""
    given = {"accept": accept, **{name.replace("_", "-"): value for name, value in more.items()}}
    return pages.answer(Request(method, path, query.encode(), given))


def got(reply: Reply | None) -> tuple[int, str]:
    assert reply
    return reply.status, reply.body.decode()


@pytest.mark.parametrize(
    "path", ["/", "/index.html", "/jobs/01ABC", "/pools/target/linux-24.04", "/users/ada.l", "/login"]
)
def test_every_page_is_shown_by_the_index(pages: Pages, path: str) -> None:
    assert got(ask(pages, path)) == (200, CONSOLE["index.html"])


def test_files_are_cached_for_ever_and_the_index_never(pages: Pages) -> None:
    sent = {name: ask(pages, f"/{name}", accept="*/*") for name in CONSOLE}
    cached = {name: reply.headers["cache-control"] for name, reply in sent.items() if reply}
    assert cached == {
        "index.html": "no-cache",
        "icon.svg": "no-cache",
        "assets/index-0a1B.js": "public, max-age=31536000, immutable",
    }
    kinds = {name: reply.headers["content-type"] for name, reply in sent.items() if reply}
    assert kinds == {
        "index.html": "text/html; charset=utf-8",
        "icon.svg": "image/svg+xml; charset=utf-8",
        "assets/index-0a1B.js": "text/javascript; charset=utf-8",
    }


@pytest.mark.parametrize("path", ["/", "/assets/index-0a1B.js", "/none"])
def test_everything_has_the_headers_that_keep_others_out(pages: Pages, path: str) -> None:
    """SEC-2."""
    reply = ask(pages, path)
    assert reply
    assert {name: reply.headers[name] for name in headers.SECURITY} == headers.SECURITY
    if reply.status == 200:
        assert reply.headers["content-security-policy"] == headers.policy()


def test_who_has_it_already_is_told_so(pages: Pages) -> None:
    reply = ask(pages, "/")
    assert reply
    again = ask(pages, "/", if_none_match=reply.headers["etag"])
    assert again
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", reply.headers["etag"])
    assert got(ask(pages, "/", if_none_match='"other"'))[0] == 200


def test_head_has_all_but_the_body(pages: Pages) -> None:
    get, head = ask(pages, "/"), ask(pages, "/", "HEAD")
    assert get
    assert head
    assert (head.status, head.body, head.headers) == (200, b"", get.headers)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/jobs", "/assets/index-0a1B.js"])
def test_pages_can_be_read_only(pages: Pages, method: str, path: str) -> None:
    reply = ask(pages, path, method)
    assert reply
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")


def test_a_file_that_is_not_there_is_missing_and_no_page(pages: Pages) -> None:
    assert got(ask(pages, "/assets/index-old.js", accept="*/*"))[0] == 404
    assert ask(pages, "/favicon.ico", accept="image/*") is None
    assert ask(pages, "/jobs", accept="application/json") is None


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/", {"authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request"}),
        ("/bucket/key", {"authorization": "AWS x:y"}),
        ("/", {"x_amz_target": "DynamoDB_20120810.ListTables"}),
        ("/bucket/key", {"x_amz_date": "20260101T000000Z"}),
        ("/bucket/key", {"query": "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=0"}),
        ("/bucket/key", {"query": "partNumber=1&x-amz-signature=0"}),
        ("/bucket/key", {"query": "AWSAccessKeyId=x&Signature=y&Expires=1"}),
        ("/", {"query": "Action=ListQueues"}),
        ("/_ministack/health", {}),
        ("/_aws/execute-api/x", {}),
        ("/_penstock/meter", {}),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_requests_of_sdks_and_of_the_emulator_are_not_the_consoles(
    pages: Pages, method: str, path: str, more: dict[str, str]
) -> None:
    """Whatever they accept."""
    assert ask(pages, path, method, **more) is None


def test_an_unsigned_post_to_the_root_is_refused_as_ever(pages: Pages) -> None:
    assert ask(pages, "/", "POST", accept="*/*") is None


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt", "/assets/../../secret.txt", "//secret.txt", "/./secret.txt", "/assets/%2e%2e/secret.txt",
        "/link.txt", "/links/secret.txt", "/..", "/secret.txt\0.js", "/assets/..\\..\\secret.txt",
    ],
)  # fmt: skip
def test_nothing_outside_the_folder_is_read(folder: Path, path: str) -> None:
    """SEC-2: neither by a path, nor by a link in the folder."""
    (folder.parent / "secret.txt").write_text("secret")
    (folder / "link.txt").symlink_to(folder.parent / "secret.txt")
    (folder / "links").symlink_to(folder.parent)
    for accept in (PAGE, "*/*"):
        reply = ask(Pages(folder), path, accept=accept)
        assert reply is None or b"secret" not in reply.body


def test_a_new_build_is_served_at_once(pages: Pages, folder: Path) -> None:
    assert got(ask(pages, "/")) == (200, CONSOLE["index.html"])
    (folder / "new.html").write_text("new")
    (folder / "new.html").replace(folder / "index.html")
    assert got(ask(pages, "/")) == (200, "new")


def test_without_a_build_a_browser_is_told_and_nobody_else(tmp_path: Path) -> None:
    for pages in (Pages(None), Pages(tmp_path / "nowhere")):
        status, said = got(ask(pages, "/jobs"))
        assert (status, "penstock local up" in said) == (404, True)
        assert ask(pages, "/", accept="*/*") is None
        assert ask(pages, "/", "POST") is None
