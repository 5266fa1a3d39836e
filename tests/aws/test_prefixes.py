"""Names that only S3 itself would take: whatever a job calls its objects, they can be removed. [UNIT-1]

The emulator lists names as they are, so S3 is played here: it encodes names where it is asked to, and reads XML as
strictly as XML 1.0 says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote_plus, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from penstock.drivers.wells.aws import calls, prefixes
from penstock.drivers.wells.aws.prefixes import Prefix, Removed
from penstock.kernel.errors import Misconfigured
from tests.crash.emulator import _Content

ODD = ("a\x01b", "a\x0bb", "a\x1fb", "a\ufffeb", "a\uffffb")
EVEN = ("a", "a b", "a+b", "a%41", "a&<b", "a\tb", "a\rb", "a\nb", "\u00e9", "\ud7ff", "\ue000", "\ufffd", "\U0001f600")
BELOW = "site/well/r-1/"


@dataclass
class S3:
    """One bucket without versions. `now` is moved by a second by each call."""

    keys: set[str] = field(default_factory=set)
    uploads: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    locked: str = ""
    now: int = 0

    def client(self) -> Any:
        """A real client that ends here."""
        made: Any = boto3.client("s3", "eu-west-1", aws_access_key_id="x", aws_secret_access_key="x", config=calls.CALL)
        made.meta.events.register("before-send.s3.*", self.answer)
        return made

    def prefix(self) -> Prefix:
        return Prefix(self.client(), "lent", BELOW, lambda: float(self.now))

    def answer(self, request: AWSPreparedRequest, event_name: str, **_: Any) -> AWSResponse:
        self.now += 1
        call, url = event_name.rpartition(".")[2], urlsplit(request.url)
        self.done.append(call)
        status, said = getattr(self, call)(unquote(url.path[1:]), parse_qs(url.query), request.body)
        return AWSResponse(request.url, status, {}, _Content(said.encode()))  # type: ignore[arg-type]

    def ListObjectVersions(self, _: str, query: Any, __: Any) -> tuple[int, str]:
        most = int(query["max-keys"][0])
        return self._listed("Version", "VersionId", sorted(self.keys)[:most], query)

    def ListMultipartUploads(self, _: str, query: Any, __: Any) -> tuple[int, str]:
        most = int(query["max-uploads"][0])
        return self._listed("Upload", "UploadId", sorted(self.uploads)[:most], query)

    def _listed(self, what: str, id: str, keys: list[str], query: Any) -> tuple[int, str]:
        is_encoded = query.get("encoding-type") == ["url"]
        named = [quote_plus(each, safe="/") if is_encoded else escape(each) for each in keys]
        each = "".join(f"<{what}><Key>{name}</Key><{id}>null</{id}></{what}>" for name in named)
        return 200, f"<Listed>{'<EncodingType>url</EncodingType>' if is_encoded else ''}{each}</Listed>"

    def DeleteObjects(self, _: str, __: Any, body: Any) -> tuple[int, str]:
        try:
            keys = [each.text or "" for each in ElementTree.fromstring(body).iter() if each.tag.endswith("Key")]
        except ElementTree.ParseError:
            return 400, "<Error><Code>MalformedXML</Code></Error>"
        assert self.keys.issuperset(keys)
        self.keys -= set(keys)
        return 200, "<DeleteResult/>"

    def DeleteObject(self, key: str, query: Any, _: Any) -> tuple[int, str]:
        assert query["versionId"] == ["null"]
        if key == self.locked:
            return 403, "<Error><Code>AccessDenied</Code></Error>"
        self.keys.remove(key)
        return 204, ""

    def AbortMultipartUpload(self, key: str, _: Any, __: Any) -> tuple[int, str]:
        self.uploads.remove(key)
        return 204, ""


@pytest.mark.parametrize("name", ODD + EVEN)
def test_an_object_and_an_upload_of_any_name_can_be_removed(name: str) -> None:
    s3 = S3({BELOW + name}, {BELOW + name})
    assert s3.prefix().empty() == (Removed(1, 1), True)
    assert (s3.keys, s3.uploads) == (set(), set())
    assert ("DeleteObject" in s3.done) == (name in ODD)


def test_only_what_no_list_can_name_takes_a_call_of_its_own() -> None:
    s3 = S3({BELOW + name for name in ODD + EVEN})
    assert s3.prefix().empty() == (Removed(len(ODD + EVEN)), True)
    assert s3.done.count("DeleteObjects") == 1
    assert s3.done.count("DeleteObject") == len(ODD)


def test_an_odd_one_that_cannot_be_removed_is_told() -> None:
    s3 = S3({BELOW + "a\x01b"}, locked=BELOW + "a\x01b")
    with pytest.raises(Misconfigured, match="DeleteObject: AccessDenied"):
        s3.prefix().empty()


def test_of_many_odd_ones_a_page_takes_some_and_counts_only_those(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefixes, "SINGLES", 2)
    monkeypatch.setattr(prefixes, "PAGES_PER_STEP", 2)
    s3 = S3({BELOW + name for name in ODD})
    assert s3.prefix().empty() == (Removed(4), False)
    assert s3.prefix().empty() == (Removed(1), True)


def test_a_step_that_takes_long_begins_no_other_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would be broken off, and would not say what it did."""
    monkeypatch.setattr(prefixes, "SINGLES", 1)
    monkeypatch.setattr(prefixes, "STEP_SECONDS", 5)
    s3 = S3({BELOW + name for name in ODD})
    assert s3.prefix().empty() == (Removed(2), False)
