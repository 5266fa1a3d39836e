"""A GitHub on this machine, over HTTP: as strict as the real one about who asks, for what, and how often.

It knows what the front end needs of the REST API, as GitHub documents it, and answers 404 to everything else.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

APP, INSTALLATION = 4711, 99
GRANTED = {
    "checks": "write", "contents": "write", "members": "read", "metadata": "read", "pull_requests": "read",
    "packages": "read",
}  # fmt: skip
"""What whoever installed the App gave it."""


CLIENT_ID, CLIENT_SECRET = "Iv1.a629723000043722", "client-secret-of-the-app"
"""With what the App asks who somebody is."""


@dataclass(frozen=True)
class Consent:
    """That somebody let the App know who they are: the account, and what was asked with."""

    id: int
    login: str
    challenge: str
    redirect: str


@dataclass
class Repo:
    """A repository: files by commit, who may what, and what its lines end with. `main` is its default branch."""

    name: str
    id: int
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    rights: dict[str, str] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)
    installation: int = INSTALLATION


@dataclass
class Minted:
    """A token of an installation, for some of its repositories or, without any, for all."""

    repositories: list[int]
    permissions: dict[str, str]
    until: datetime


@dataclass(frozen=True)
class Answer:
    """What is answered."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class No(Exception):
    """A request that is turned away."""

    def __init__(self, status: int, why: str, **headers: str) -> None:
        super().__init__(why)
        self.answer = Answer(status, {"message": why}, {name.replace("_", "-"): said for name, said in headers.items()})


class FakeGitHub:
    """One App, one installation, some repositories. `now` is its clock, `asked` all that it was asked."""

    def __init__(self, key: rsa.RSAPublicKey, now: Callable[[], datetime]) -> None:
        self.key, self.now = key, now
        self.url = ""
        self.repos: dict[int, Repo] = {}
        self.members: set[str] = set()
        self.runs: dict[int, dict[str, Any]] = {}
        self.deliveries: list[dict[str, Any]] = []
        self.tokens: dict[str, Minted] = {}
        self.asked: list[tuple[str, str]] = []
        self.codes: dict[str, Consent] = {}
        self.people: dict[str, Consent] = {}
        self.limited_until: datetime | None = None
        self.how = "primary"
        self.rude = 0
        self.broken = 0
        self.page = 100

    def repo(self, name: str) -> Repo:
        found = next((repo for repo in self.repos.values() if repo.name == name), None)
        if found is None:
            raise No(404, "Not Found")
        return found

    def installed(self) -> set[int]:
        """The ids of all repositories that the App is installed in: those of a token that is for no one of them."""
        return {id for id, repo in self.repos.items() if repo.installation == INSTALLATION}

    def limit(self, seconds: float, how: str = "primary") -> None:
        """Ask everybody to be left alone for a while: `primary`, `secondary`, `silent` or `429`."""
        self.limited_until, self.how = self.now() + timedelta(seconds=seconds), how

    def shown(self, name: str) -> dict[str, Any]:
        """The latest check run of a name."""
        return [run for run in self.runs.values() if run["name"] == name][-1]

    def answer(self, method: str, target: str, headers: Any, raw: bytes) -> Answer:
        """Answer a request; what is limited, or not allowed, is turned away."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        self.asked.append((method, url.path))
        try:
            self._may_now()
            if (method, url.path) == ("POST", "/login/oauth/access_token"):
                return self._exchange({name: each[0] for name, each in parse_qs(raw.decode()).items()})
            if (method, url.path) == ("GET", "/user"):
                return self._user(headers.get("authorization", ""))
            who = self._who(headers.get("authorization", ""))
            body = json.loads(raw) if raw else {}
            found = self._route(method, unquote(url.path), query, body, who, headers)
            return self._tagged(found, method, headers)
        except No as no:
            return no.answer

    def consent(self, address: str, id: int, login: str) -> dict[str, str]:
        """Somebody signs in at the address that the App sent them to: what they come back with."""
        url = urlsplit(address)
        asked = {name: each[0] for name, each in parse_qs(url.query).items()}
        assert f"{url.scheme}://{url.netloc}{url.path}" == f"{self.url}/login/oauth/authorize"
        assert (asked["client_id"], asked["code_challenge_method"]) == (CLIENT_ID, "S256")
        code = f"code-{len(self.asked)}-{len(self.codes)}"
        self.codes[code] = Consent(id, login, asked["code_challenge"], asked["redirect_uri"])
        return {"code": code, "state": asked["state"]}

    def _exchange(self, form: dict[str, str]) -> Answer:
        """A user's token for a code, once. A refusal is answered with 200, as GitHub documents it."""
        consent = self.codes.pop(form["code"], None)
        shown = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if (form["client_id"], form["client_secret"]) != (CLIENT_ID, CLIENT_SECRET):
            return Answer(200, {"error": "incorrect_client_credentials"})
        if consent is None or (consent.challenge, consent.redirect) != (shown, form["redirect_uri"]):
            return Answer(200, {"error": "bad_verification_code"})
        token = f"ghu_{len(self.people):036}"
        self.people[token] = consent
        return Answer(200, {"access_token": token, "token_type": "bearer", "scope": ""})

    def _user(self, header: str) -> Answer:
        who = self.people.get(header.removeprefix("Bearer "))
        if who is None:
            raise No(401, "Bad credentials")
        return Answer(200, {"id": who.id, "login": who.login, "type": "User"})

    def _may_now(self) -> None:
        if self.broken:
            self.broken -= 1
            raise No(502, "Bad Gateway")
        if self.limited_until is None or self.now() >= self.limited_until:
            return
        self.rude += 1
        reset = str(int(self.limited_until.timestamp()))
        after = str(int((self.limited_until - self.now()).total_seconds()))
        if self.how == "primary":
            raise No(403, "API rate limit exceeded", x_ratelimit_remaining="0", x_ratelimit_reset=reset)
        if self.how == "429":
            raise No(429, "Too many requests")
        if self.how == "silent":
            raise No(403, "You have exceeded a secondary rate limit.")
        raise No(403, "You have exceeded a secondary rate limit.", retry_after=after)

    def _who(self, header: str) -> Minted | None:
        """Whose token is shown; None for the App itself."""
        kind, _, token = header.partition(" ")
        if kind != "Bearer" or not token:
            raise No(401, "Requires authentication")
        if token.count(".") == 2:
            self._check_proof(token)
            return None
        minted = self.tokens.get(token)
        if minted is None or minted.until <= self.now():
            raise No(401, "Bad credentials")
        return minted

    def _check_proof(self, token: str) -> None:
        head, claims, signature = token.split(".")
        try:
            signed = f"{head}.{claims}".encode()
            self.key.verify(part(signature), signed, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            raise No(401, "A JSON web token could not be decoded") from None
        said, now = json.loads(part(claims)), self.now().timestamp()
        if json.loads(part(head)) != {"alg": "RS256", "typ": "JWT"} or said["iss"] != str(APP):
            raise No(401, "Integration not found")
        if not said["iat"] <= now < said["exp"] <= now + 600:
            raise No(401, "'Expiration time' claim is too far in the future, or over")

    def _route(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any], who: Minted | None, headers: Any
    ) -> Answer:
        of_app = re.fullmatch(r"/repos/([^/]+/[^/]+)/installation", path)
        if path.startswith("/app/") or of_app:
            if who is not None:
                raise No(401, "A JSON web token is needed")
            if of_app:
                return Answer(200, {"id": self.repo(of_app[1]).installation})
            return self._of_app(method, path, query, body)
        if who is None:
            raise No(401, "This needs a token of an installation")
        if (method, path) == ("DELETE", "/installation/token"):
            who.until = self.now()
            return Answer(204)
        if match := re.fullmatch(r"/orgs/([^/]+)/members/([^/]+)", path):
            self._may(who, "members", "read")
            return Answer(204) if match[2] in self.members else Answer(404, {"message": "Not Found"})
        match = re.fullmatch(r"/repos/([^/]+/[^/]+)(?:/(.+))?", path)
        if match is None:
            raise No(404, "Not Found")
        repo = self.repo(match[1])
        if repo.id not in (who.repositories or self.installed()):
            raise No(404, "Not Found")
        if not match[2]:
            return Answer(200, {"id": repo.id, "full_name": repo.name})
        return self._of_repo(method, repo, match[2], query, body, who, headers)

    def _of_app(self, method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> Answer:
        if method == "POST" and path == f"/app/installations/{INSTALLATION}/access_tokens":
            return self._mint(body)
        if path == "/app/hook/deliveries":
            return self._paged(
                [{k: v for k, v in each.items() if k != "request"} for each in self.deliveries], path, query
            )
        if match := re.fullmatch(r"/app/hook/deliveries/(\d+)", path):
            return Answer(200, next(each for each in self.deliveries if each["id"] == int(match[1])))
        raise No(404, "Not Found")

    def _mint(self, body: dict[str, Any]) -> Answer:
        wanted, of = body["permissions"], body.get("repository_ids", [])
        over = [name for name, level in wanted.items() if GRANTED.get(name) not in (level, "write")]
        if over or not set(of) <= self.installed():
            raise No(422, f"The permissions requested are not granted to this installation: {over}")
        token = f"ghs_{len(self.tokens):036}"
        self.tokens[token] = Minted(of, wanted, self.now() + timedelta(hours=1))
        until = self.tokens[token].until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Answer(201, {"token": token, "expires_at": until, "permissions": wanted})

    def _may(self, who: Minted, name: str, level: str) -> None:
        if who.permissions.get(name) not in (level, "write"):
            raise No(403, "Resource not accessible by integration")

    def _of_repo(
        self, method: str, repo: Repo, path: str, query: dict[str, str], body: dict[str, Any], who: Minted, headers: Any
    ) -> Answer:
        kind = path.split("/")[0]
        if kind == "contents":
            self._may(who, "contents", "read")
            return self._contents(repo, path.partition("/")[2], query.get("ref", "main"), headers)
        if kind == "collaborators":
            right = repo.rights.get(path.split("/")[1])
            if right is None:
                raise No(404, "Not Found")
            return Answer(200, {"permission": right})
        if kind in ("git", "pulls"):
            self._may(who, "pull_requests" if kind == "pulls" else "contents", "read")
            line = path.replace("git/ref/", "").replace("pulls/", "pull/")
            if line not in repo.ends:
                raise No(404, "Not Found")
            sha = repo.ends[line]
            return Answer(200, {"head": {"sha": sha}} if kind == "pulls" else {"object": {"sha": sha}})
        self._may(who, "checks", "write")
        return self._checks(method, repo, path, query, body)

    def _contents(self, repo: Repo, path: str, ref: str, headers: Any) -> Answer:
        files = repo.files.get(ref, {})
        if path in files and headers["accept"] == "application/vnd.github.raw+json":
            return Answer(200, files[path])
        inside = {name.removeprefix(path + "/") for name in files if name.startswith(path + "/")}
        if not inside:
            raise No(404, "Not Found")
        names = sorted({(name.split("/")[0], "dir" if "/" in name else "file") for name in inside})
        return Answer(200, [{"name": name, "type": kind} for name, kind in names])

    def _checks(self, method: str, repo: Repo, path: str, query: dict[str, str], body: dict[str, Any]) -> Answer:
        if method == "POST" and path == "check-runs":
            self._check_body(body, {"name", "head_sha"})
            if body["head_sha"] not in repo.files:
                raise No(422, "No commit found for SHA")
            run = {"id": 1000 + len(self.runs), "app": {"id": APP}, "repository": repo.id, **body}
            self.runs[run["id"]] = run
            return Answer(201, run)
        if match := re.fullmatch(r"check-runs/(\d+)", path):
            self._check_body(body, set())
            self.runs[int(match[1])] |= body
            return Answer(200, self.runs[int(match[1])])
        if match := re.fullmatch(r"commits/([0-9a-f]+)/check-runs", path):
            named = [
                run for run in self.runs.values() if (run["head_sha"], run["name"]) == (match[1], query["check_name"])
            ]
            told = self._paged(named, f"/repos/{repo.name}/{path}", query)
            return Answer(200, {"total_count": len(named), "check_runs": told.body}, told.headers)
        raise No(404, "Not Found")

    def _check_body(self, body: dict[str, Any], needed: set[str]) -> None:
        """What GitHub refuses with 422."""
        output, actions = body.get("output", {}), body.get("actions", [])
        wrong = [
            not needed <= body.keys(),
            body.get("status") == "completed" and "conclusion" not in body,
            len(output.get("summary", "")) > 65535 or len(output.get("text", "")) > 65535,
            len(output.get("annotations", [])) > 50,
            len(actions) > 3,
            any(
                len(one["label"]) > 20 or len(one["description"]) > 40 or len(one["identifier"]) > 20 for one in actions
            ),
        ]
        if any(wrong):
            raise No(422, f"Invalid request {wrong}")

    def _paged(self, items: list[Any], path: str, query: dict[str, str]) -> Answer:
        size = min(int(query.get("per_page", "30")), self.page)
        at = int(query.get("cursor", "0"))
        headers = {}
        if at + size < len(items):
            more = "".join(f"&{name}={said}" for name, said in query.items() if name != "cursor")
            headers["link"] = (
                f'<{self.url}{path}?cursor={at + size}{more}>; rel="next", <{self.url}{path}>; rel="first"'
            )
        return Answer(200, items[at : at + size], headers)

    def _tagged(self, found: Answer, method: str, headers: Any) -> Answer:
        if method != "GET" or found.status != 200 or isinstance(found.body, bytes):
            return found
        tag = f'"{hashlib.sha256(json.dumps(found.body).encode()).hexdigest()}"'
        if headers.get("if-none-match") == tag:
            return Answer(304)
        return Answer(found.status, found.body, {**found.headers, "etag": tag})


def part(text: str) -> bytes:
    """A part of a JSON Web Token."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def signature(secret: str, body: bytes) -> str:
    """What GitHub sends in X-Hub-Signature-256."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


@contextmanager
def serving(fake: FakeGitHub) -> Iterator[str]:
    """Serve it on a port of this machine for a while."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            answer = fake.answer(self.command, self.path, self.headers, raw)
            body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            body = b"" if answer.status in (204, 304) else body
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = do

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield fake.url
    finally:
        server.shutdown()
        server.server_close()
