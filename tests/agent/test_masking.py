"""Secrets in output are hidden, in every form and however the bytes arrive. [SEC-1]"""

from __future__ import annotations

import base64
import json
import random
import re
import shlex
import textwrap
import urllib.parse
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.agent import masking
from penstock.agent.masking import QUIET_SECONDS, Mask, MaskedStream, resource_secrets

TOKEN = "s3cr3t+T0ken/4711=x"

FORMS = {
    "plain": lambda text: text,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, one byte on": lambda text: base64.b64encode(b"a" + text.encode() + b"zz").decode(),
    "base64, two bytes on": lambda text: base64.b64encode(b"ab" + text.encode() + b"z").decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(b"user:" + text.encode()).decode(),
    "base64 in lines": lambda text: base64.encodebytes(b"x" * 40 + text.encode() + b"y" * 50).decode(),
    "base64 in lines of a PEM": lambda text: "\r\n".join(
        textwrap.wrap(base64.b64encode(b"x" * 31 + text.encode() + b"y" * 50).decode(), 64)
    ),
    "base64, indented": lambda text: textwrap.indent(
        base64.encodebytes(b"x" * 40 + text.encode() + b"y" * 50).decode(), "    "
    ),
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "hex in lines": lambda text: "\n".join(textwrap.wrap((b"x" * 25 + text.encode() + b"y" * 50).hex(), 60)),
    "percent": urllib.parse.quote,
    "percent, all that may be": lambda text: urllib.parse.quote(text, safe=""),
    "percent, small": lambda text: urllib.parse.quote(text, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
    "percent, all": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "form": urllib.parse.quote_plus,
    "json": lambda text: json.dumps({"a": text}),
    "json as it is": lambda text: json.dumps(text, ensure_ascii=False),
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "json of PHP": lambda text: json.dumps(text).replace("/", "\\/"),
    "shell": lambda text: "a=" + shlex.quote(text),
    "shell, escaped": lambda text: "".join(f"\\{char}" if not char.isalnum() else char for char in text),
    "shell, traced": lambda text: "+ a='" + text.replace("'", "'\\''") + "'",
}


def said(mask: Mask, data: bytes, cuts: list[int]) -> bytes:
    """What leaves of data that comes in pieces."""
    out: list[bytes] = []
    stream = MaskedStream(mask, lambda data, final: out.append(data))
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        stream.feed(data[start:end])
    stream.feed(b"", final=True)
    return b"".join(out)


words = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), min_size=8)
secret_texts = words.map(str.strip).filter(lambda text: len(text) >= 8)


@settings(max_examples=400, deadline=None)
@given(secret_texts, st.sampled_from(sorted(FORMS)), st.text(), st.text(), st.data())
def test_every_form_of_a_secret_is_hidden(secret, form, before, after, data):
    shown = FORMS[form](secret)
    whole = (before + "\n" + shown + after).encode("utf-8", "surrogatepass")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    told = said(Mask([secret]), whole, cuts)
    assert b"***" in told
    assert shown.encode() not in told.replace(b"***", b"\0")
    assert len(told) <= len(whole) + 40 * whole.count(b"\n") + 40


def read_back(told: bytes) -> Iterator[bytes]:
    """All that somebody may make of what left: each piece, decoded in every way from every place."""
    told = told.replace(b"\n***", b"***").replace(b"\r", b"")
    for piece in re.split(rb"\*\*\*|[ \n]", told):
        yield piece
        yield urllib.parse.unquote_to_bytes(piece.replace(b"+", b" "))
        yield re.sub(rb"\\+", b"", piece)
        for run in re.findall(rb"[A-Za-z0-9+/_-]+", piece):
            for at in range(4):
                part = run[at:].translate(bytes.maketrans(b"-_", b"+/"))
                yield base64.b64decode(part[: len(part) // 4 * 4])
                yield base64.b64decode(part + b"A" * (-len(part) % 4))
        for run in re.findall(rb"[0-9A-Fa-f]+", piece):
            yield from (bytes.fromhex(run[at : at + (len(run) - at) // 2 * 2].decode()) for at in (0, 1))


@settings(max_examples=400, deadline=None)
@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="xyabuz"), min_size=8, max_size=90),
    st.sampled_from(sorted(FORMS)),
    st.data(),
)
def test_no_part_of_a_secret_can_be_read_back(secret, form, data):
    whole = f"{FORMS[form](secret)}\n".encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    told = said(Mask([secret]), whole, cuts)
    parts = {secret[at : at + 3].encode() for at in range(len(secret) - 2)}
    assert not [(part, found) for found in read_back(told) for part in parts if part in found]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("ab", min_size=8, max_size=12), min_size=1, max_size=4), st.text("ab\n"), st.data())
def test_overlapping_secrets_are_hidden(hidden, text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    told = said(Mask(hidden), text.encode(), cuts)
    assert all(secret.encode() not in told for secret in hidden)
    assert told.count(b"\n") == text.count("\n")
    for line, before in zip(told.decode().split("\n"), text.split("\n"), strict=True):
        assert line == before or "***" in line


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=3000), st.data())
def test_text_without_secrets_is_unchanged(noise, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(noise)), max_size=8)))
    assert said(Mask([TOKEN, "another-secret"]), noise, cuts) == noise


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step", [1, 7, 64])
def test_a_secret_that_arrives_byte_by_byte(form, step):
    data = f"before\n{FORMS[form](TOKEN)}\nafter\n".encode()
    told = said(Mask([TOKEN]), data, list(range(step, len(data), step)))
    assert told.startswith(b"before\n")
    assert told.endswith(b"\nafter\n")
    assert told == said(Mask([TOKEN]), data, [])
    assert b"***" in told


def test_a_secret_of_several_lines_is_hidden_line_by_line():
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ\n-----END KEY-----\n"
    mask = Mask(resource_secrets({"db": {"metadata": {"tls": key}}}))
    assert said(mask, f"say {key}done\n".encode(), [9, 25]) == b"say ***\n***\n***\n***\ndone\n"
    assert mask.text(json.dumps(key)) == '"***\\n***\\n***\\n***\\n"'


def test_a_line_without_end_is_searched():
    rng = random.Random(7)
    noise = [bytes(rng.choice(b"xyz") for _ in range(rng.randint(1, 5000))) for _ in range(40)]
    data = TOKEN.encode().join(noise)
    told = said(Mask([TOKEN]), data, list(range(1000, len(data), 1000)))
    assert TOKEN.encode() not in told
    assert told.replace(b"*", b"") == b"".join(noise)


def test_an_endless_secret_is_not_held_for_ever():
    out: list[bytes] = []
    stream = MaskedStream(Mask(["aaaaaaaa"]), lambda data, final: out.append(data))
    for _ in range(1000):
        stream.feed(b"a" * 1000)
    assert out
    stream.feed(b"", final=True)
    assert b"a" not in b"".join(out)


def test_lines_are_passed_on_at_once_and_those_that_may_continue_after_a_while(monkeypatch):
    out: list[bytes] = []
    time = [0.0]
    monkeypatch.setattr(masking, "now", lambda: time[0])
    stream = MaskedStream(Mask([TOKEN]), lambda data, final: out.append(data))
    stream.feed(b"one\ntwo\npart")
    assert out == [b"one\ntwo\n"]
    folded = b"QUJD" * 19 + b"\n"
    stream.feed(b"ial\n" + folded)
    assert out[1:] == [b"partial\n"]
    stream.flush_quiet()
    assert out[2:] == []
    time[0] = QUIET_SECONDS
    stream.flush_quiet()
    assert out[2:] == [folded]


def test_no_more_folded_lines_are_held_than_a_secret_has():
    kept: list[bytes] = []
    stream = MaskedStream(Mask([TOKEN]), lambda data, final: kept.append(data))
    for _ in range(1000):
        stream.feed(b"QUJD" * 19 + b"\n")
    assert len(b"".join(kept)) >= 77 * 998


def test_the_secrets_of_resources():
    found = resource_secrets({
        "db": {
            "public": ["name", "host"],
            "metadata": {
                "name": "database-17",
                "host": {"inner": "db.example.com"},
                "url": "postgres://ada:p%40ss@db.example.com/x",
                "pin": "123",
                "port": 5432,
                "id": 12345678,
                "is": True,
                "note": "short",
                "deep": [{"password": "1234", "more": ["only1"]}, None],
                "secrets": {"a": ["abcd", 5]},
            },
        },
        "empty": {"metadata": {}},
        "old": {},
    })  # fmt: skip
    assert sorted(found) == sorted(
        ["postgres://ada:p%40ss@db.example.com/x", "p%40ss", "p@ss", "12345678", "1234", "abcd"]
    )


def test_a_mask_learns():
    mask = Mask()
    assert mask.text(TOKEN) == TOKEN
    mask.learn([TOKEN, ""])
    assert mask.text(f"a {TOKEN} b {TOKEN[:-1]}") == f"a *** b {TOKEN[:-1]}"


def test_a_secret_that_is_not_valid_utf8_is_hidden():
    assert Mask(["\ud800secretive"]).text('x \ud800secretive "\\ud800secretive"') == 'x *** "***"'
