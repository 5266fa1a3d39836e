"""Values that a request must not have."""

from __future__ import annotations

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


ODD = {
    "empty-ish": " ",
    "lower case": ULID.lower(),
    "too short": ULID[:-1],
    "too long": ULID + "A",
    "letters that are none": "U" * 26,
    "beyond time": "8" + ULID[1:],
    "dots": "..",
    "a percent escape": "%2e%2e",
    "an escaped slash": "a%2Fb",
    "an escaped newline": ULID + "%0A",
    "a newline": ULID + "\n",
    "a NUL": "\0",
    "an escaped NUL": "%00",
    "a tab": "a\tb",
    "a control character": "\x1b[31m",
    "other digits": "\u0661" * 26,
    "letters of elsewhere": "жук",
    "half an escape": "%f",
    "bytes that are no text": "%ff%fe",
    "10,000 characters": "0" * 10_000,
    "quotes": "'\"<b>",
    "a star": "*",
}
