"""The service's HTTP API, a method per request. Answers are the API's own objects."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from penstock.cli.errors import Refused
from penstock.cli.transport import Transport

Object = dict[str, Any]
PAGE = 100


class Api:
    """What users and operators may ask for. Every method raises Refused, Broken or Unreachable."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def get(self, *path: str, **query: str) -> Any:
        """Any document by its path."""
        return self.transport.send("GET", at(*path), params=list(query.items()))

    def put(self, *path: str, body: object = None, **query: str) -> Any:
        """Set something; the same request twice is as one."""
        return self.transport.send("PUT", at(*path), body=body, params=list(query.items()))

    def act(self, *path: str, body: object = None) -> Any:
        """A POST that may be repeated: the second one finds the work done."""
        return self.transport.send("POST", at(*path), body=body if body is not None else {})

    def make(self, *path: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
        """A POST that makes something. Only with an Idempotency-Key among its headers may it be repeated."""
        sent = {} if body is None else body
        return self.transport.send("POST", at(*path), body=sent, headers=headers, repeatable=bool(headers))

    def delete(self, *path: str, **query: str) -> Any:
        """Remove something; removing it twice is fine."""
        return self.transport.send("DELETE", at(*path), params=list(query.items()))

    def items(self, *path: str, query: list[tuple[str, str]] | None = None, most: int | None = None) -> Pages:
        """The entries of a list, of as many pages as it takes for `most` of them (None: all)."""
        return Pages(self, path, query or [], most)

    def submit(self, body: Mapping[str, object], key_: str | None = None) -> str:
        """Submit a job and return its id. A lost answer leads to the same job, not to a second one; so does the key."""
        key = {"Idempotency-Key": key_ or str(uuid.uuid4())}
        return str(self.make("jobs", body=body, headers=key)["id"])

    def plan(self, body: Mapping[str, object]) -> Object:
        """What would become of a job if it were submitted now."""
        return _object(self.transport.send("POST", at("jobs"), body=body, params=[("plan", "true")]))

    def job(self, job: str) -> Object:
        """A job as it is now."""
        return _object(self.get("jobs", job))

    def events(self, job: str, after: int, last: int = 0) -> Object:
        """The part of a job's log that follows number `after`, of its `last` events (0: all); and the job's state."""
        newest = {"last": str(last)} if last else {}
        return _object(self.get("jobs", job, "events", after=str(after), **newest))

    def why(self, job: str) -> Object:
        """What a job waits for."""
        return _object(self.get("jobs", job, "why"))

    def output(self, job: str, wanted: str) -> Object:
        """A job's output by its path or id. Raises Refused, naming those that there are."""
        found = list(self.items("jobs", job, "outputs"))
        for output in found:
            if wanted in (output["path"], output["id"]):
                return output
        known = [f"  {output['path']}" for output in found] or ["  (none)"]
        raise Refused(f"job {job} has no output `{wanted}`", "give one of these paths as it is", known)

    def sign(self, job: str, output: str, seconds: int | None = None) -> Object:
        """A URL from which anybody can download an output for a while."""
        body = {} if seconds is None else {"expires_in": seconds}
        return _object(self.act("jobs", job, "outputs", output, "sign", body=body))


class Pages:
    """Iterates over a paged list. `more` tells afterwards whether there is more than was taken."""

    def __init__(self, api: Api, path: tuple[str, ...], query: list[tuple[str, str]], most: int | None) -> None:
        self._api, self._path, self._query, self._most = api, path, query, most
        self.more = False

    def __iter__(self) -> Iterator[Object]:
        left = self._most
        page: str | None = None
        while True:
            size = PAGE if left is None else min(left, PAGE)
            query = [*self._query, ("limit", str(size)), *([("page", page)] if page else [])]
            answer = self._api.transport.send("GET", at(*self._path), params=query)
            yield from answer["items"]
            page = answer.get("next")
            left = None if left is None else left - len(answer["items"])
            if not page or (left is not None and left <= 0):
                self.more = bool(page)
                return


def at(*path: str) -> str:
    """The path of a request. Raises Refused for names that can't be part of one."""
    for part in path:
        if not part or any(step in ("", ".", "..") for step in part.split("/")):
            raise Refused(f"`{part}` is not a name", "give the name or id as the list command shows it")
    return "/v1/" + "/".join(quote(part, safe="/@:") for part in path)


def _object(answer: Any) -> Object:
    return dict(answer)
