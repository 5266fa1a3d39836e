"""What users and operators do in a run: each asks again until it is known to be done."""

from __future__ import annotations

from typing import Any

from tests.crash.runtime import Reply, Runtime
from tests.crash.site import Site


class Users:
    """Everybody who uses the site."""

    site: Site
    runtime: Runtime
    token: str
    asked: int
    held: set[str]
    held_names: set[str]

    def submit(self, by: str = "", **more: Any) -> str:
        """Submit a job, again and again until it is known to be accepted. `by` is somebody's token."""
        ask = {"script": "#!/bin/sh\ntrue\n", **more}
        return str(self._user("POST", "/v1/jobs", ask, 201, by=by).body["id"])

    def submit_held(self, name: str, by: str = "", **more: Any) -> str:
        """Submit a job whose script runs until it is let go, also while its submit stands still."""
        self.held_names.add(name)
        job = self.submit(by, name=name, **more)
        self.held.add(job)
        self.held_names.discard(name)
        return job

    def lease(self, *types: str, seconds: int = 3600) -> str:
        """Acquire resources without a job."""
        return str(self._user("POST", "/v1/leases", {"resources": list(types), "for": seconds}, 201).body["id"])

    def renew(self, lease: str, seconds: int) -> None:
        """Renew a lease; that it is over already is fine."""
        self._user("POST", f"/v1/leases/{lease}/renew", {"for": seconds}, 200, 409)

    def give_back(self, lease: str) -> None:
        """Release a lease."""
        self._user("POST", f"/v1/leases/{lease}/release", None, 200)

    def cancel(self, job: str) -> None:
        """Cancel a job; that it is over already is fine."""
        self._user("POST", f"/v1/jobs/{job}/cancel", None, 200, 409)

    def resize(self, pool: str, limit: int) -> None:
        """Set a pool's limit."""
        self._user("PUT", f"/v1/pools/{pool}/limit", {"limit": limit}, 200)

    def pause(self, pool: str, what: str) -> None:
        """Pause or resume a pool."""
        self._user("POST", f"/v1/pools/{pool}/{what}", None, 200)

    def stop(self, what: str, verb: str) -> None:
        """Stop the site, a factory or a well, or lift that."""
        self._user("POST", f"/v1/{what}/{verb}", {"reason": "the network is rebuilt"}, 200)

    def configure(self, toml: str) -> None:
        """Apply a site."""
        self._user("PUT", "/v1/config", {"toml": toml}, 200)

    def abort(self, job: str) -> None:
        """Stop the flow of a job's present attempt in the console of Step Functions."""
        (attempt,) = [row.attempt for row in self.jobs() if row.id == job]
        machine = self.site.machine.replace(":stateMachine:", ":execution:")
        self.site.clients["stepfunctions"].stop_execution(executionArn=f"{machine}:{job}-{attempt}")

    def release(self, worker: str) -> None:
        """Let a worker out of quarantine; that it is out already is fine."""
        self._user("POST", f"/v1/workers/{worker}/release", {}, 200, 409)

    def put(self, job: str, name: str, secret: str) -> None:
        """Put a secret into a job's store; that the job is over already is fine."""
        self._user("PUT", f"/v1/jobs/{job}/store/{name}", {"value": secret, "secret": True}, 200, 409)

    def let_go(self, job: str) -> None:
        """Let a job's script end."""
        self.held.discard(job)

    def _user(self, method: str, path: str, body: Any, *wanted: int, by: str = "") -> Reply:
        self.asked += 1
        for _ in range(5):
            reply = self.runtime.ask("user", method, path, by or self.token, body, key=str(self.asked))
            if not reply.should_be_repeated:
                break
        assert reply.status in wanted, reply
        return reply
