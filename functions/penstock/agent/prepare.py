"""`agent.pyz prepare NAME WORD...`: the programs that prepare a machine before the job's own script runs.

setup           makes the user that the job's tasks run as
authentication  gives git and curl the job's token
clone           clones the repository at the job's commit
toolchain       installs Rust with rustup

`tasks` runs each of them as a task, like a script of the job: its output is logged, and it can be cancelled.
"""

from __future__ import annotations

import contextlib
import grp
import hashlib
import http.client
import json
import os
import platform
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, TypeVar

from .account import Account
from .machine import Machine, now

T = TypeVar("T")
TRIES = 5
FIRST_SECONDS, MOST_SECONDS = 1.0, 30.0
EXIT_TEMPORARY = 75
"""EX_TEMPFAIL: the same may succeed later."""

PROGRESS_SECONDS = 10.0
LAST_LINES = 20
READ_BYTES = 1 << 12
SUDOERS = "/etc/sudoers.d"
SUDO_LISTING = "may run the following commands"
PROBE_SECONDS = 20.0
QUIET: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
ROOT_GROUPS = (
    *("root", "sudo", "wheel", "admin", "shadow", "disk", "kmem"),
    *("docker", "lxd", "incus", "incus-admin", "libvirt", "microk8s"),
)
"""Groups whose members can become root, by the names that distributions give them."""

SHOWN_IDS = 3
TOKEN_NAME = "GITHUB_TOKEN"
TOKEN_USER = "x-access-token"
GIT_PERMANENT_ERRORS = re.compile(
    r"not found|returned error: 40[0-79]|Authentication failed|could not read (Username|Password)|terminal prompts|"
    r"No space left|Permission denied|does not appear to be a git repository|cannot be run"
)
"""Errors of git that no retry cures. Others may come from the network, or from a commit that does not exist yet."""

GIT_NO_PROMPT = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
GIT_STALL_LIMITS = {"GIT_HTTP_LOW_SPEED_LIMIT": "1000", "GIT_HTTP_LOW_SPEED_TIME": "60"}
RUSTUP_VERSION = "1.28.2"
RUSTUP_ROOT = "https://static.rust-lang.org/rustup"
RUSTUP_DIGESTS = {
    "x86_64-unknown-linux-gnu": "20a06e644b0d9bd2fbdbfd52d42540bdde820ea7df86e92e533c073da0cdd43c",
    "aarch64-unknown-linux-gnu": "e3853c5a252fca15252d07cb23a1bdd9377a8c6f3efa01531109281ae47f841c",
    "x86_64-unknown-linux-musl": "e6599a1c7be58a2d8eaca66a80e0dc006d87bbcf780a58b7343d6e14c1605cb2",
}
"""SHA-256 of rustup-init, as published. For other platforms, and on a mirror, a file beside it has the digest."""

RUSTUP_PROFILE = "default"
TOOLCHAIN_FILE = "rust-toolchain.toml"
DOWNLOAD_SECONDS = 60.0
CHUNK = 1 << 18
CHANNEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
RUSTUP_PERMANENT_ERRORS = re.compile(
    "invalid toolchain name|nonexistent|not installable|not available for|does not support|unexpected argument|"
    "could not parse|invalid value|override file|No space left|Permission denied"
)


class Failed(Exception):
    """Why a program failed. `passing`: it may succeed later, or on another machine."""

    def __init__(self, text: str, passing: bool = False) -> None:
        super().__init__(text)
        self.passing = passing


def retry(work: Callable[[], T]) -> T:
    """Call `work` until it succeeds, at most TRIES times. Raises Failed, at once if it is not `passing`."""
    seconds = FIRST_SECONDS
    for tried in range(1, TRIES):
        try:
            return work()
        except Failed as why:
            if not why.passing:
                raise
            say(f"try {tried} of {TRIES} failed: {why}; the next follows in {seconds:g} s")
            time.sleep(seconds)
            seconds = min(2 * seconds, MOST_SECONDS)
    return work()


def say(text: str) -> None:
    """Print a line and flush it."""
    print(text, flush=True)


def run_command(command: Sequence[str], cwd: str | None = None, env: Mapping[str, str] | None = None) -> list[str]:
    """Run a command; its output goes to the log. Return its last lines. Raises Failed."""
    try:
        child = subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as why:
        raise Failed(f"{command[0]} cannot be run: {why}") from why
    last = deque[str](_read_lines(child.stdout), LAST_LINES) if child.stdout else deque[str]()
    code = child.wait()
    if code:
        raise Failed(next(iter(_error_lines(last)), f"{command[0]} exited with code {code}"), passing=True)
    return list(last)


def _error_lines(last: deque[str]) -> list[str]:
    """Return the lines that explain a failed command, the best first: its first error line, then its last line."""
    errors = [line for line in last if line.lower().startswith(("fatal:", "error:"))]
    return [*errors[:1], *[line for line in reversed(last) if line.strip()][:1]]


def _read_lines(stream: IO[bytes]) -> Iterator[str]:
    """Print lines as they come, and yield them. Of a progress meter's lines, print one every ten seconds."""
    rest, printed = b"", now()
    while data := stream.read1(READ_BYTES):  # type: ignore[attr-defined]
        *parts, rest = (rest + data).replace(b"\r\n", b"\n").replace(b"\r", b"\r\0").split(b"\n")
        for part in parts:
            yield _print_line(part.split(b"\0")[-1])
        if b"\0" in rest:
            *over, rest = rest.split(b"\0")
            if now() > printed + PROGRESS_SECONDS:
                printed = now()
                yield _print_line(over[-1])
    if rest:
        yield _print_line(rest)


def _print_line(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip("\r")
    say(text)
    return text


def report_failure(why: Failed) -> int:
    """Print why the program failed, as its last line. Return its exit code."""
    print(why, file=sys.stderr, flush=True)
    return EXIT_TEMPORARY if why.passing else 1


def set_up_user(user: Account, machine: Machine) -> None:
    """Make the user and its folders, if missing. Allow it to become root, or make sure that it cannot.

    Raises Failed, OSError.
    """
    if user.is_made:
        _make_user(user)
    for folder in (user.home, machine.real_path("/work"), *([machine.real_path("/tmp")] if machine.private else [])):
        os.makedirs(folder, exist_ok=True)
        os.chown(folder, user.uid, user.gid)
        os.chmod(folder, 0o700)
    _own_folder(machine.real_path("/input"), user)
    if user.may_be_root:
        _allow_sudo(user)
    else:
        forbid_root(user)


def _make_user(user: Account) -> None:
    with contextlib.suppress(KeyError):
        found = pwd.getpwnam(user.name)
        if (found.pw_uid, found.pw_gid) != (user.uid, user.gid):
            ids = f"uid {found.pw_uid} and gid {found.pw_gid}, not {user.uid} and {user.gid}"
            raise Failed(f"this machine has a user {user.name} with {ids}")
        return
    with contextlib.suppress(KeyError):
        raise Failed(f"this machine has a user {pwd.getpwuid(user.uid).pw_name} with uid {user.uid}")
    try:
        grp.getgrgid(user.gid)
    except KeyError:
        run_command(["groupadd", "-g", str(user.gid), user.name])
    about = ["-u", str(user.uid), "-g", str(user.gid), "-d", user.home, "-M", "-s", "/bin/bash"]
    run_command(["useradd", *about, user.name])
    say(f"made the user {user.name}, uid {user.uid}")


def _own_folder(top: str, user: Account) -> None:
    """Make the user the owner of a folder: inputs were fetched before the user existed."""
    os.makedirs(top, exist_ok=True)
    os.chown(top, user.uid, user.gid)
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            os.lchown(os.path.join(folder, name), user.uid, user.gid)


def _allow_sudo(user: Account) -> None:
    """Allow the user to run anything as root: the machine is the job's alone."""
    if not shutil.which("sudo"):
        say("there is no sudo on this machine: jobs cannot become root")
        return
    path, rule = _sudo_rule(user)
    if _has_rule(path, rule):
        return
    os.makedirs(SUDOERS, mode=0o750, exist_ok=True)
    draft = f"{path}~"  # sudo ignores names with a ~
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o440), "w", encoding="utf-8") as file:
        file.write(rule)
    os.replace(draft, path)
    say(f"{user.name} may become root by sudo")


def _sudo_rule(user: Account) -> tuple[str, str]:
    """Return the path of the agent's own rule, and its text."""
    return os.path.join(SUDOERS, user.name), f"{user.name} ALL=(ALL:ALL) NOPASSWD: ALL\n"


def _has_rule(path: str, rule: str) -> bool:
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        return file.read() == rule
    return False


def forbid_root(user: Account) -> None:
    """Remove the agent's own rule for sudo, and make sure that the user cannot become root. Raises Failed. [SEC-2]"""
    path, rule = _sudo_rule(user)
    if _has_rule(path, rule):
        os.unlink(path)
        say(f"removed {path}: {user.name} may not become root")
    ways = ways_to_root(user)
    if ways:
        raise Failed(
            f"jobs must not become root here, but their user {user.name} can: {'; '.join(ways)}. "
            "Take this away from it; on a machine of its own the target may give root instead (sudo = true)"
        )
    say(f"{user.name} cannot become root")


def ways_to_root(user: Account) -> list[str]:
    """Return how the user can become root, each as a part of a sentence. Raises Failed if that cannot be tried."""
    return [*_groups_with_root(user), *_commands_with_root(user), *_ids_with_root(user)]


def _groups_with_root(user: Account) -> list[str]:
    """Return the groups of the user whose members can become root, as a part of a sentence."""
    found = []
    for id in sorted({user.gid, *user.groups()}):
        with contextlib.suppress(KeyError):
            name = grp.getgrgid(id).gr_name
            if id == 0 or name in ROOT_GROUPS:
                found.append(f"it is in the group {name}")
    return found


def _commands_with_root(user: Account) -> list[str]:
    """Return which programs let the user become root, as a part of a sentence. Each is really tried."""
    found = []
    if shutil.which("sudo") and (
        any(_succeeds(command, user) for command in (["sudo", "-n", "true"], ["sudo", "-n", "-l"]))
        or SUDO_LISTING in _output(["sudo", "-n", "-l", "-U", user.name])
    ):
        found.append("sudo allows it something (sudo -l -U shows what)")
    if shutil.which("doas") and _succeeds(["doas", "-n", "true"], user):
        found.append("doas allows it something")
    return found


def _ids_with_root(user: Account) -> list[str]:
    """Return which lists of subordinate ids give the user those of others, as a part of a sentence."""
    found = []
    for path, ids in user.foreign_ids().items():
        shown = [f"{id} ({name})" for id, name in list(ids.items())[:SHOWN_IDS]]
        more = [f"{len(ids) - SHOWN_IDS} more"] if len(ids) > SHOWN_IDS else []
        found.append(f"its ranges in {path} contain ids of others: {', '.join(shown + more)}")
    return found


def _succeeds(command: Sequence[str], user: Account) -> bool:
    """Return whether a command of the user's succeeds. One that hangs does not. Raises Failed."""
    try:
        options = {**QUIET, **user.popen_options()}
        return subprocess.run(command, timeout=PROBE_SECONDS, cwd="/", check=False, **options).returncode == 0
    except subprocess.TimeoutExpired:
        return False
    except OSError as why:
        raise Failed(f"{command[0]} cannot be run as {user.name}: {why}") from why


def _output(command: Sequence[str]) -> str:
    """Return what a command of root's prints; nothing if it hangs."""
    env = {**os.environ, "LC_ALL": "C"}
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, timeout=PROBE_SECONDS, cwd="/", env=env, check=False, **QUIET)
        return str(done.stdout, "utf-8", "replace")
    return ""


def authenticate(machines: Sequence[str]) -> None:
    """Wait for the token, and write ~/.netrc. Raises Failed, OSError. [SEC-1]"""
    token = retry(_job_token)
    home = os.environ["HOME"]
    path = os.path.join(home, ".netrc")
    _write_private(path, "".join(f"machine {each}\nlogin {TOKEN_USER}\npassword {token}\n" for each in machines))
    say(f"~/.netrc has the job's token for {' and '.join(machines)}")


def _job_token() -> str:
    """Get the token with `bmat`, as any script can. The agent masks it in the log first."""
    done = subprocess.run(["bmat", "store", "get", TOKEN_NAME], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    token = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode:
        raise Failed(f"bmat could not get {TOKEN_NAME}", passing=True)
    if not token:
        raise Failed(f"{TOKEN_NAME} is empty; the job's log says why there is none")
    if len(token.split()) != 1:
        raise Failed(f"{TOKEN_NAME} is no token")
    return token


def _write_private(path: str, text: str) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    draft = f"{path}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, path)


def clone_repository(url: str, sha: str, branch: str, folder: str) -> None:
    """Clone a repository, and check out a commit, on its branch if it has one. Raises Failed."""
    if os.path.isdir(folder) and os.listdir(folder):
        raise Failed(f"{folder} is not empty")
    retry(lambda: _clone_afresh(url, folder))
    retry(lambda: git("fetch", "--progress", "origin", sha, cwd=folder))
    if branch:
        git_offline("update-ref", f"refs/heads/{branch}", sha, cwd=folder)
        git_offline("symbolic-ref", "HEAD", f"refs/heads/{branch}", cwd=folder)
    git_offline("reset", "--hard", sha, cwd=folder)
    say(f"{url} is in {folder}, at {sha}{f', branch {branch}' if branch else ''}")


def _clone_afresh(url: str, folder: str) -> None:
    """Clone into an empty folder: what an earlier try left is removed first."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    git("clone", "--progress", "--no-checkout", url, folder)


def fetch_repository_file(url: str, sha: str, name: str, folder: str) -> None:
    """Fetch one file of a commit into a folder, without the rest of the repository. Raises Failed."""
    git_offline("init", "--quiet", folder)
    retry(lambda: git("fetch", "--depth", "1", url, sha, cwd=folder))
    with contextlib.suppress(Failed):  # the caller reports a missing file
        git_offline("checkout", "--quiet", "FETCH_HEAD", "--", name, cwd=folder)


def git(*arguments: str, cwd: str | None = None) -> Sequence[str]:
    """Run git: without prompts, and transfers that stall end. Raises Failed."""
    try:
        return run_command(["git", *arguments], cwd, {**GIT_STALL_LIMITS, **os.environ, **GIT_NO_PROMPT})
    except Failed as why:
        raise Failed(str(why), passing=not GIT_PERMANENT_ERRORS.search(str(why))) from why


def git_offline(*arguments: str, cwd: str | None = None) -> None:
    """Run git without the network: a failure is permanent. Raises Failed."""
    try:
        git(*arguments, cwd=cwd)
    except Failed as why:
        raise Failed(str(why)) from why


def install_toolchain(channel: str) -> None:
    """Install a channel's toolchain and make it the default. Raises Failed, OSError."""
    if not CHANNEL.fullmatch(channel):
        raise Failed(f"{channel!r} is no channel: write one like stable, 1.85 or nightly-2026-01-31")
    rustup = _find_rustup()
    retry(lambda: _run_rustup(rustup, "toolchain", "install", channel, "--profile", RUSTUP_PROFILE, "--no-self-update"))
    _run_rustup(rustup, "default", channel)


def install_toolchain_file(folder: str) -> None:
    """Install the toolchain that a folder's toolchain file names, and make it the default. Raises Failed."""
    if not os.path.isfile(os.path.join(folder, TOOLCHAIN_FILE)):
        raise Failed(f"the repository has no {TOOLCHAIN_FILE}, which `rust_toolchain = true` needs")
    rustup = _find_rustup()
    _run_rustup(rustup, "set", "profile", RUSTUP_PROFILE)
    retry(lambda: _install_active_toolchain(rustup, folder))
    active = _run_rustup(rustup, "show", "active-toolchain", cwd=folder)
    name = next((line.split()[0] for line in active if line and not line.startswith(("info:", "warn"))), "")
    if not CHANNEL.fullmatch(name):
        raise Failed(f"rustup does not report the toolchain of {TOOLCHAIN_FILE}; does the file have a channel?")
    _run_rustup(rustup, "default", name)


def install_toolchain_of_commit(url: str, sha: str) -> None:
    """Install the toolchain that a commit names, without a clone of the repository. Raises Failed."""
    with tempfile.TemporaryDirectory() as folder:
        fetch_repository_file(url, sha, TOOLCHAIN_FILE, folder)
        install_toolchain_file(folder)


def _install_active_toolchain(rustup: str, folder: str) -> None:
    try:
        _run_rustup(rustup, "toolchain", "install", "--no-self-update", cwd=folder)
    except Failed as why:
        if "required" not in str(why):
            raise
        _run_rustup(rustup, "show", cwd=folder)  # before version 1.28, `show` installs it


def _run_rustup(rustup: str, *arguments: str, cwd: str | None = None) -> list[str]:
    try:
        return run_command([rustup, *arguments], cwd)
    except Failed as why:
        raise Failed(str(why), passing=not RUSTUP_PERMANENT_ERRORS.search(str(why))) from why


def _find_rustup() -> str:
    """Return the path of rustup. If this machine has none, install it."""
    found = shutil.which("rustup")
    if found:
        say(f"this machine has rustup: {found}")
        return found
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rustup-init")
        retry(lambda: _fetch_rustup(path))
        run_command([path, "-y", "--no-modify-path", "--profile", RUSTUP_PROFILE, "--default-toolchain", "none"])
    return os.path.join(os.environ.get("CARGO_HOME") or os.path.join(os.environ["HOME"], ".cargo"), "bin/rustup")


def _fetch_rustup(path: str) -> None:
    """Download the installer of rustup, and verify its digest."""
    root, host = os.environ.get("RUSTUP_UPDATE_ROOT", RUSTUP_ROOT).rstrip("/"), _host_triple()
    url = f"{root}/archive/{RUSTUP_VERSION}/{host}/rustup-init"
    wanted = RUSTUP_DIGESTS.get(host) if root == RUSTUP_ROOT else None
    if wanted is None:
        wanted = next(iter(_read_url(f"{url}.sha256").decode("ascii", "replace").split()), "")
    say(f"fetching {url}")
    content = _read_url(url)
    found = hashlib.sha256(content).hexdigest()
    if found != wanted:
        raise Failed(f"{url} has SHA-256 {found}; expected was {wanted or 'a digest beside it'}", passing=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700), "wb") as file:
        file.write(content)


def _read_url(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=DOWNLOAD_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as why:
        raise Failed(f"{url}: HTTP {why.code}", passing=why.code >= 500 or why.code in (408, 429)) from why
    except (OSError, http.client.HTTPException) as why:
        raise Failed(f"{url}: {why}", passing=True) from why


def _host_triple() -> str:
    """Return Rust's name for this kind of machine."""
    machine = {"amd64": "x86_64", "i86pc": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    system = platform.system()
    if system == "Darwin":
        return f"{machine}-apple-darwin"
    if system == "SunOS":
        return f"{machine}-unknown-illumos"
    return f"{machine}-unknown-linux-{'gnu' if platform.libc_ver()[0] == 'glibc' else 'musl'}"


PROGRAMS: Mapping[str, Callable[..., None]] = {
    "setup": lambda account, root: set_up_user(Account(**json.loads(account)), Machine(root)),
    "authentication": lambda *machines: authenticate(machines),
    "clone": clone_repository,
    "toolchain": install_toolchain,
    "toolchain-named": install_toolchain_file,
    "toolchain-of": install_toolchain_of_commit,
}
"""The programs by name. Their arguments are never read as options, whatever a job file contains."""


def prepare(arguments: list[str]) -> int:
    """Run the named program. Return its exit code. If it failed, its last line says why."""
    name, *words = arguments
    try:
        PROGRAMS[name](*words)
    except Failed as why:
        return report_failure(why)
    except OSError as why:
        return report_failure(Failed(str(why)))
    return 0
