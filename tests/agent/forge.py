"""A real HTTP server with what a job needs of others: a repository that asks for a token, and where Rust is from."""

import base64
import contextlib
import hashlib
import os
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

TOKEN = "ghs_0123456789abcdefghij"
REPOSITORY = "oxide/hubris"
QUIET = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
INIT = """#!/bin/bash
echo "init $*"
mkdir -p "$HOME/.cargo/bin"
cat > "$HOME/.cargo/bin/rustup" <<'EOF'
"""
RUSTUP = """#!/bin/bash
[ "$1" = show ] || echo "rustup $*"
state="$HOME/.installed"
case "$*" in
  "toolchain install 9.9"*) echo "error: could not download nonexistent rust version '9.9'" >&2; exit 1;;
  "toolchain install flaky"*) echo x >> "$HOME/tries"; if [ "$(wc -l < "$HOME/tries")" -lt 2 ]; then
    echo "error: could not download file: connection reset" >&2; exit 1; fi; echo flaky > "$state";;
  "toolchain install --no-self-update") sed -n 's/.*channel *= *"\\(.*\\)".*/\\1/p' rust-toolchain.toml > "$state";;
  "toolchain install "*) echo "$3" > "$state";;
  "show active-toolchain") cat "$state";;
  "default "*) cargo="$HOME/.cargo/bin/cargo"; printf '#!/bin/sh\\necho cargo of %s\\n' "$2" > "$cargo"
    chmod +x "$cargo";;
esac
"""


def git(*arguments: str, cwd: Path) -> str:
    """Run git as somebody, without the settings of whoever runs the tests."""
    who = ["-c", "user.name=ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *who, *arguments], cwd=cwd, env={**os.environ, **QUIET}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


class Forge:
    """`misbehave` gets a path and which request of that path this is, from 1; it may return a status to answer with."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.requests = folder, list[tuple[str, str]]()
        self.misbehave: Callable[[str, int], int | None] = lambda path, count: None
        self.served: dict[str, bytes] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"forge": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._make()

    def __enter__(self) -> "Forge":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _make(self) -> None:
        """A repository with two commits: the second is on no branch any more, as one of a pull request may be."""
        self.work = self.folder / "source"
        self.work.mkdir(parents=True)
        git("init", "--quiet", cwd=self.work)
        self.first = self.commit("a", "one")
        bare = self.folder / f"served/{REPOSITORY}"
        bare.parent.mkdir(parents=True)
        git("clone", "--quiet", "--bare", ".", str(bare), cwd=self.work)
        git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=bare)
        self.bare = bare
        self.second = self.commit("a", "two", "rust-toolchain.toml", '[toolchain]\nchannel = "1.85"\n')
        git("push", "--quiet", str(bare), f"{self.second}:refs/pull/7/head", cwd=self.work)

    def commit(self, *files: str) -> str:
        for name, text in zip(files[::2], files[1::2], strict=True):
            (self.work / name).write_text(text + "\n")
        git("add", "--all", cwd=self.work)
        git("commit", "--quiet", "--message", "x", cwd=self.work)
        return git("rev-parse", "HEAD", cwd=self.work)

    def told(self, **changes: Any) -> dict[str, Any]:
        """What hello says of the repository."""
        about = {"name": REPOSITORY, "url": f"{self.url}/{REPOSITORY}", "sha": self.second, "branch": ""}
        return {**about, "machines": ["127.0.0.1", "api.127.0.0.1"], "clone": True, **changes}

    def serve_rustup(self, host: str, wrong: bool = False) -> None:
        content = f'{INIT}{RUSTUP}EOF\nchmod +x "$HOME/.cargo/bin/rustup"\n'.encode()
        path = f"/rustup/archive/1.28.2/{host}/rustup-init"
        self.served[path] = content
        digest = hashlib.sha256(b"else" if wrong else content).hexdigest()
        self.served[f"{path}.sha256"] = f"{digest} *./rustup-init\n".encode()


class Handler(BaseHTTPRequestHandler):
    """`forge` is set by the subclass that a forge makes for itself."""

    forge: Forge

    def do_GET(self) -> None:
        self.serve(b"")

    def do_POST(self) -> None:
        self.serve(self.rfile.read(int(self.headers["Content-Length"] or 0)))

    def serve(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        self.forge.requests.append((path, self.headers["Authorization"] or ""))
        fault = self.forge.misbehave(path, [each for each, _ in self.forge.requests].count(path))
        if fault:
            self.answer(fault, b"")
        elif path.startswith("/rustup/"):
            self.answer(200 if path in self.forge.served else 404, self.forge.served.get(path, b""))
        elif self.headers["Authorization"] != f"Basic {base64.b64encode(f'x-access-token:{TOKEN}'.encode()).decode()}":
            self.answer(401, b"", **{"WWW-Authenticate": 'Basic realm="forge"'})
        else:
            self.backend(path, query, body)

    def backend(self, path: str, query: str, body: bytes) -> None:
        about = {
            "GIT_PROJECT_ROOT": str(self.forge.folder / "served"),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers["Content-Type"] or "",
            "HTTP_CONTENT_ENCODING": self.headers["Content-Encoding"] or "",
            "GIT_PROTOCOL": self.headers["Git-Protocol"] or "",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env={**os.environ, **QUIET, **about}, capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.answer(int(headers.pop("Status", "200").split()[0]), content, **headers)

    def answer(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # git may hang up when it has read the headers
            self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        pass
