"""What `bmat` may ask: facts of the job, its store, its caches, who it is, and processes beside its task."""

from __future__ import annotations

import json
from typing import Any

from .caches import Caches, Wanted
from .control import Declined, ServiceError
from .facts import Facts
from .job import Job
from .masking import text_secrets

TRIES = 4
"""How often the service is asked for one answer: some seconds. Who waits for a value asks again."""


class Clerk:
    """Answers one line of JSON with JSON. Whatever is secret is hidden in the log before it is given out. [SEC-1]"""

    def __init__(self, job: Job) -> None:
        self._job, self._facts = job, Facts(job)

    def answer(self, line: bytes) -> bytes:
        """Return what was asked for; {"error": why} when it cannot be had."""
        try:
            ask = json.loads(line)
            do = {
                "facts": self._tell,
                "get": self._get,
                "put": self._put,
                "identity": self._identity,
                "process": self._process,
                "post": self._post,
                "cache": self._cache,
            }[ask["do"]]
            return do(ask)
        except (ServiceError, Declined) as why:
            return json.dumps({"error": str(why)}).encode()
        except (ValueError, LookupError, TypeError, RecursionError):
            return json.dumps({"error": "this agent does not know what bmat asks"}).encode()

    def _tell(self, _: dict[str, Any]) -> bytes:
        return self._facts.read()

    def _get(self, ask: dict[str, Any]) -> bytes:
        found = self._call("store/get", {"name": ask["name"]})
        if found.get("secret"):
            self._job.mask.learn(text_secrets(str(found["value"])))
        return json.dumps(found).encode()

    def _put(self, ask: dict[str, Any]) -> bytes:
        value = ask["value"]
        if not isinstance(value, str):
            raise TypeError("a value is text")
        if ask["secret"]:
            self._job.mask.learn(text_secrets(value))
        body = {"name": ask["name"], "value": value, "secret": ask["secret"]}
        return json.dumps(self._call("store/put", body)).encode()

    def _identity(self, ask: dict[str, Any]) -> bytes:
        """Get a token, and hide its signature, without which the rest of it proves nothing to anybody. [SEC-1]"""
        found = self._call("identity", {"audience": ask["audience"]})
        self._job.mask.learn(text_secrets(str(found["token"]).rpartition(".")[2]))
        return json.dumps(found).encode()

    def _process(self, ask: dict[str, Any]) -> bytes:
        self._job.background.start(ask)
        return b"{}"

    def _post(self, ask: dict[str, Any]) -> bytes:
        self._job.posts.add(ask)
        return b"{}"

    def _cache(self, ask: dict[str, Any]) -> bytes:
        keys = [str(each) for each in ask["restore_keys"]]
        paths = [str(each) for each in ask["paths"]]
        wanted = Wanted(str(ask["name"]), paths, str(ask["key"]), keys, str(ask["cwd"]))
        caches = Caches(self._job)
        came = caches.save(wanted) if ask["what"] == "save" else caches.restore(wanted)
        return json.dumps({"word": came.word, "text": came.text}).encode()

    def _call(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._job.service.call(self._job.order.job, what, body, TRIES)
