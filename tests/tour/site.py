"""The twin behind the real handlers: messages, ends of flows and the agent's requests come in as they do on AWS."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import agent_api
import factory
import schedule
import settle
import well

from penstock import agentfile, bootstrap
from penstock.domain.jobs.jobs import Job, job_key
from penstock.domain.units.units import Unit, UnitState
from penstock.drivers import Registry
from penstock.system import current_site
from penstock.testing.site import site_toml
from penstock.testing.twin import Twin
from penstock.usecases.site import apply
from tests.functions.service import Context, Service, request

HANDLERS = {"schedule": schedule, "factory": factory, "well": well}


class HandledTwin(Twin):
    """A twin whose every step is taken by a handler."""

    def take(self, queue: str, message: dict[str, Any]) -> None:
        """Bring a message to its function."""
        record = {"messageId": "1", "eventSource": "aws:sqs", "body": json.dumps(message)}
        answer = HANDLERS[queue].handler({"Records": [record]}, Context())
        assert not answer["batchItemFailures"], message

    def settle(self, job: str, attempt: int, error: str | None, cause: str | None) -> None:
        """Bring the end of a flow to its function."""
        event = {"job": job, "attempt": attempt} | ({"error": {"Error": error, "Cause": cause}} if error else {})
        settle.handler(event, Context())  # type: ignore[arg-type]


class Site:
    """A site with workers beside it and one licence; its user is `ada`."""

    def __init__(self, home: Path, python: Path) -> None:
        self.twin = HandledTwin()
        self.twin.world.time = datetime.now(UTC)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _answering(self))
        url = f"http://127.0.0.1:{self.server.server_port}"
        drivers = Registry({"PENSTOCK_HOME": str(home)})
        self.twin.on = replace(self.twin.on, url=url, drivers=drivers)
        self.service = Service(self.twin)
        self.service.add("ada")
        self.lock = threading.RLock()
        self.has_finished = False
        text = site_toml(
            factories={"here": {"driver": "process", "python": str(python)}},
            targets={"default": {"factory": "here"}},
            wells={"licences": "lock"},
            resources={"licence": {"well": "licences", "limit": 1}},
        )
        with self._plugged():
            apply.apply(self.twin.on, "ada", text, "site.toml")
            self.twin.run()
        self._warm_up()

    def _warm_up(self) -> None:
        """Fill what a warm function keeps from one call to the next: the parsed site and the agent's file."""
        current_site(self.twin.on)
        agentfile.build_compiled()

    @contextmanager
    def _plugged(self) -> Iterator[None]:
        """Let handlers find the twin where they look for AWS."""
        aws, bootstrap.aws = bootstrap.aws, lambda: self.twin.on  # type: ignore[assignment]
        try:
            yield
        finally:
            bootstrap.aws = aws

    def run_job(self, script: str, resource: str, agent_ended: Callable[[], object]) -> str:
        """Submit a job, wait until its agent has ended, and then until nothing of the job is left."""
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        with self._plugged():
            try:
                with self.lock:
                    job = self.service.submit(script=script, resources=[resource])
                agent_ended()
                self._clean()
            finally:
                self.server.shutdown()
                self.server.server_close()
        return job

    def job(self, job: str) -> Job:
        """A job as it is stored."""
        found = self.twin.store.get(job_key(job), Job)
        assert found
        return found

    def _clean(self) -> None:
        """Let time pass until all units are gone."""
        for _ in range(100):
            with self.lock:
                self.twin.run()
                if all(row.state is UnitState.GONE for row in self.twin.store.rows.values() if isinstance(row, Unit)):
                    return
                self.twin.pass_time(1)
        raise AssertionError("a unit is left")

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
        """Answer a request of the agent's."""
        with self.lock:
            self.has_finished = self.has_finished or path.endswith("/finish")
            return agent_api.handler(request("POST", path, body.decode(), headers, ()), Context())  # type: ignore[arg-type]

    def follow(self) -> None:
        """Do what follows from a request. What follows from the agent's report waits until the agent has ended."""
        with self.lock:
            if not self.has_finished:
                self.twin.run()


def _answering(site: Site) -> type[BaseHTTPRequestHandler]:
    """What stands for API Gateway."""

    class Gateway(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Every request of an agent."""
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            answer = site.answer(self.path, dict(self.headers.items()), body)
            text = (answer.get("body") or "").encode()
            self.send_response(answer["statusCode"])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            site.follow()

        def log_message(self, *given: object) -> None:
            """Nothing is logged."""

    return Gateway
