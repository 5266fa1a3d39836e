"""Rust, by rustup: the machine's own, or one that is fetched. What it does is in the job's home, and goes with that."""

from __future__ import annotations

import hashlib
import http.client
import os
import platform
import re
import shutil
import tempfile
import urllib.error
import urllib.request

from .clone import fetch_file
from .trying import Failed, persist, run, say

VERSION = "1.28.2"
ROOT = "https://static.rust-lang.org/rustup"
PINNED = {
    "x86_64-unknown-linux-gnu": "20a06e644b0d9bd2fbdbfd52d42540bdde820ea7df86e92e533c073da0cdd43c",
    "aarch64-unknown-linux-gnu": "e3853c5a252fca15252d07cb23a1bdd9377a8c6f3efa01531109281ae47f841c",
    "x86_64-unknown-linux-musl": "e6599a1c7be58a2d8eaca66a80e0dc006d87bbcf780a58b7343d6e14c1605cb2",
}
"""Of rustup-init, as published with it. Others, and those of a mirror, are compared with what lies beside them."""

PROFILE = "default"
FILE = "rust-toolchain.toml"
SECONDS = 60.0
CHUNK = 1 << 18
CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
NEVER = re.compile(
    "invalid toolchain name|nonexistent|not installable|not available for|does not support|unexpected argument|"
    "could not parse|invalid value|override file|No space left|Permission denied"
)


def install(channel: str) -> None:
    """Have a channel's toolchain be the job's default. Raises Failed, OSError."""
    if not CHANNEL.fullmatch(channel):
        raise Failed(f"{channel!r} is no channel: write one like stable, 1.85 or nightly-2026-01-31")
    rustup = _rustup()
    persist(lambda: _run(rustup, "toolchain", "install", channel, "--profile", PROFILE, "--no-self-update"))
    _run(rustup, "default", channel)


def install_named(folder: str) -> None:
    """Have the toolchain that a folder's file names be the job's default, with all that it asks for. Raises Failed."""
    if not os.path.isfile(os.path.join(folder, FILE)):
        raise Failed(f"the repository has no {FILE}, which `rust_toolchain = true` is about")
    rustup = _rustup()
    _run(rustup, "set", "profile", PROFILE)
    persist(lambda: _install_active(rustup, folder))
    active = _run(rustup, "show", "active-toolchain", cwd=folder)
    name = next((line.split()[0] for line in active if line and not line.startswith(("info:", "warn"))), "")
    if not CHANNEL.fullmatch(name):
        raise Failed(f"rustup does not say which toolchain {FILE} names; does it have a channel?")
    _run(rustup, "default", name)


def install_of(url: str, sha: str) -> None:
    """The same for a commit of a repository that is not cloned. Raises Failed."""
    with tempfile.TemporaryDirectory() as folder:
        fetch_file(url, sha, FILE, folder)
        install_named(folder)


def _install_active(rustup: str, folder: str) -> None:
    try:
        _run(rustup, "toolchain", "install", "--no-self-update", cwd=folder)
    except Failed as why:
        if "required" not in str(why):
            raise
        _run(rustup, "show", cwd=folder)  # before 1.28 this is what installs it


def _run(rustup: str, *arguments: str, cwd: str | None = None) -> list[str]:
    try:
        return run([rustup, *arguments], cwd)
    except Failed as why:
        raise Failed(str(why), passing=not NEVER.search(str(why))) from why


def _rustup() -> str:
    """Where rustup is; it is fetched if this machine has none."""
    found = shutil.which("rustup")
    if found:
        say(f"rustup is there: {found}")
        return found
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rustup-init")
        persist(lambda: _fetch(path))
        run([path, "-y", "--no-modify-path", "--profile", PROFILE, "--default-toolchain", "none"])
    return os.path.join(os.environ.get("CARGO_HOME") or os.path.join(os.environ["HOME"], ".cargo"), "bin/rustup")


def _fetch(path: str) -> None:
    """Fetch what installs rustup. Nothing is run that is not what it should be."""
    root, host = os.environ.get("RUSTUP_UPDATE_ROOT", ROOT).rstrip("/"), _host()
    url = f"{root}/archive/{VERSION}/{host}/rustup-init"
    wanted = PINNED.get(host) if root == ROOT else None
    if wanted is None:
        wanted = next(iter(_read(f"{url}.sha256").decode("ascii", "replace").split()), "")
    say(f"fetching {url}")
    content = _read(url)
    found = hashlib.sha256(content).hexdigest()
    if found != wanted:
        raise Failed(f"{url} has SHA-256 {found}; expected was {wanted or 'one'}", passing=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700), "wb") as file:
        file.write(content)


def _read(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as why:
        raise Failed(f"{url}: HTTP {why.code}", passing=why.code >= 500 or why.code in (408, 429)) from why
    except (OSError, http.client.HTTPException) as why:
        raise Failed(f"{url}: {why}", passing=True) from why


def _host() -> str:
    """What Rust calls this kind of machine."""
    machine = {"amd64": "x86_64", "i86pc": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    system = platform.system()
    if system == "Darwin":
        return f"{machine}-apple-darwin"
    if system == "SunOS":
        return f"{machine}-unknown-illumos"
    return f"{machine}-unknown-linux-{'gnu' if platform.libc_ver()[0] == 'glibc' else 'musl'}"
