"""The console is built when its sources changed, never too big, and whoever has none is told why."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock import sources
from penstock.console import budget, build, node, packages


def quiet(line: str) -> None:
    """Progress that nobody reads."""


@dataclass
class Npm:
    """Stands for npm: it says what was run, and makes what Vite makes."""

    web: Path
    ran: list[Sequence[str]] = field(default_factory=list)
    script: bytes = b"let it;"
    fails: str = ""

    def __call__(self, *words: str) -> None:
        self.ran.append(words)
        if self.fails and self.fails in words:
            raise build.ConsoleError("the console cannot be built: npm says so")
        if words[0] == "ci":
            (self.web / "node_modules").mkdir(exist_ok=True)
        if words[:3] == ("run", "--silent", "api"):
            (self.web / "src" / "api").mkdir(parents=True, exist_ok=True)
            (self.web / "src" / "api" / "schema.d.ts").write_text(str(len(self.ran)))  # made anew each time
        if words[:3] == ("run", "--silent", "build"):
            self._make(Path(words[words.index("--outDir") + 1]))

    def _make(self, out: Path) -> None:
        (out / "assets").mkdir(parents=True)
        (out / ".vite").mkdir()
        (out / "index.html").write_text("<script src=/assets/index-1.js>")
        (out / "assets/index-1.js").write_bytes(self.script)
        (out / "assets/shared-1.js").write_bytes(b"shared")
        (out / "assets/jobs-1.js").write_bytes(b"x" * 10)
        manifest = {
            "index.html": {"file": "assets/index-1.js", "isEntry": True, "imports": ["_shared.js"], "css": []},
            "_shared.js": {"file": "assets/shared-1.js"},
            "src/pages/jobs.tsx": {"file": "assets/jobs-1.js", "isDynamicEntry": True, "imports": ["_shared.js"]},
        }
        (out / budget.MANIFEST).write_text(json.dumps(manifest))

    def took(self) -> list[str]:
        """What was run since this was asked last."""
        found = [words[2] if words[0] == "run" else words[0] for words in self.ran]
        self.ran.clear()
        return found


ALL = ["api", "types", "build"]


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Npm:
    """A clone with a console, and what stands for npm."""
    web = tmp_path / "web"
    (web / "src").mkdir(parents=True)
    for name in ("package.json", "index.html", "src/main.tsx"):
        (web / name).write_text(name)
    (web / "package-lock.json").write_text(json.dumps({"packages": {}}))
    monkeypatch.setattr(sources, "WEB", web)
    monkeypatch.setattr(sources, "BUILT", tmp_path / "build")
    monkeypatch.setattr(sources, "CONSOLE", tmp_path / "build" / "web")
    found = Npm(web)
    monkeypatch.setattr(build, "_npm", found)
    return found


def test_it_is_built_once_and_again_only_after_a_change(npm: Npm) -> None:
    folder = build.built(quiet)
    assert (folder / "index.html").is_file()
    assert not (folder / ".vite").exists()
    assert npm.took() == ["ci", *ALL]
    assert (build.built(quiet), npm.took()) == (folder, [])
    (npm.web / "src/main.tsx").write_text("other")
    build.built(quiet)
    assert npm.took() == ALL  # what it is built with is there
    (npm.web / "package-lock.json").write_text(json.dumps({"packages": {}, "other": 1}))
    build.built(quiet)
    assert npm.took() == ["ci", *ALL]


def test_a_new_source_and_another_document_of_the_api_are_changes(npm: Npm, monkeypatch: pytest.MonkeyPatch) -> None:
    before = build.fingerprint()
    (npm.web / "src/more.ts").write_text("")
    after = build.fingerprint()
    monkeypatch.setattr(build, "DOCUMENT", "py.typed")
    assert len({before, after, build.fingerprint()}) == 3


def test_another_node_installs_and_builds_anew(npm: Npm, monkeypatch: pytest.MonkeyPatch) -> None:
    build.built(quiet)
    npm.took()
    monkeypatch.setattr(node, "version", lambda: "99.0.0")
    build.built(quiet)
    assert npm.took() == ["ci", *ALL]


def test_packages_are_those_of_the_lockfile_and_run_nothing_when_installed(npm: Npm) -> None:
    """npm ci compares the hashes in the lockfile. Scripts of packages would run as whoever builds."""
    build.built(quiet)
    (words,) = [words for words in npm.ran if words[0] == "ci"]
    assert "--ignore-scripts" in words


def test_a_build_that_fails_leaves_the_former_one_and_is_tried_again(npm: Npm) -> None:
    folder = build.built(quiet)
    (npm.web / "src/main.tsx").write_text("wrong")
    npm.fails = "types"
    for _ in range(2):
        with pytest.raises(build.ConsoleError, match="npm says so"):
            build.built(quiet)
    assert (folder / "index.html").is_file()
    npm.fails = ""
    npm.took()
    build.built(quiet)
    assert npm.took() == ALL


def test_an_installation_that_failed_is_done_again(npm: Npm) -> None:
    npm.fails = "ci"
    with pytest.raises(build.ConsoleError):
        build.built(quiet)
    npm.fails = ""
    build.built(quiet)
    assert npm.took() == ["ci", "ci", *ALL]


def test_what_was_removed_is_built_again(npm: Npm) -> None:
    folder = build.built(quiet)
    (folder / "index.html").unlink()
    npm.took()
    build.built(quiet)
    assert npm.took() == ALL


def test_the_first_view_counts_all_that_it_imports_at_once(npm: Npm) -> None:
    build.built(quiet)
    found = {each.name: each.is_first for each in _parts(npm)}
    assert found == {
        "index.html": True, "assets/index-1.js": True, "assets/shared-1.js": True, "assets/jobs-1.js": False,
    }  # fmt: skip


def test_a_first_view_that_is_too_big_is_no_build(npm: Npm) -> None:
    """What cannot be compressed, of just as many bytes as are left, and of one more."""
    build.built(quiet)
    others = sum(each.size for each in _parts(npm) if each.is_first and each.name != "assets/index-1.js")
    npm.script = _bytes_of(budget.MOST_BYTES - others)
    (npm.web / "src/main.tsx").write_text("big")
    build.built(quiet)
    npm.script = _bytes_of(budget.MOST_BYTES - others + 1)
    (npm.web / "src/main.tsx").write_text("bigger")
    with pytest.raises(build.ConsoleError, match=r"too big:\n(.*\n)*.*200\.0 KB .*first view"):
        build.built(quiet)


def _parts(npm: Npm) -> Sequence[budget.Part]:
    out = npm.web.parent / f"parts-{random.random()}"
    npm._make(out)
    return budget.parts(out)


def _bytes_of(compressed: int) -> bytes:
    """Bytes that have this many when they are compressed."""
    chance = random.Random(1).randbytes(compressed)
    spare = len(gzip.compress(chance, 9, mtime=0)) - compressed
    return chance[: compressed - spare]


def test_without_a_network_it_says_what_npm_said(npm: Npm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    program = tmp_path / "lib-less" / "bin" / "node"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'npm error network request to registry failed' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(node, "bundled", lambda: program)
    monkeypatch.setattr(sources, "WEB", npm.web)
    with pytest.raises(build.ConsoleError, match="`npm ci --ignore-scripts --no-audit` failed:\nnpm error network"):
        build._install(quiet)


def test_without_node_it_says_what_to_install(npm: Npm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(node, "bundled", lambda: None)
    monkeypatch.setattr(sources, "WEB", npm.web)
    with pytest.raises(build.ConsoleError, match=r"pip install 'penstock\[deploy\]'"):
        build._install(quiet)


def test_a_clone_without_its_sources_says_so(npm: Npm) -> None:
    (npm.web / "package.json").unlink()
    with pytest.raises(build.ConsoleError, match="there is no folder"):
        build.built(quiet)


def test_what_is_installed_has_it_built_or_says_that_it_has_none(npm: Npm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "IS_INSTALLED", True)
    with pytest.raises(build.ConsoleError, match="built without the console"):
        build.built(quiet)
    sources.CONSOLE.mkdir(parents=True)
    (sources.CONSOLE / "index.html").write_text("x")
    assert (build.built(quiet), npm.took()) == (sources.CONSOLE, [])


def test_the_pinned_node_and_its_npm_are_there() -> None:
    program = node.bundled()
    assert program
    assert node.npm(program).is_file()
    assert node.version()


WEB = Path(__file__).parents[2] / "web"

PERMISSIVE = {"MIT", "ISC", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Unlicense"}
"""Licences under which the console may be shipped with Penstock, which is under Apache-2.0."""


def test_all_that_is_shipped_may_be_shipped() -> None:
    shipped = [each for _, each in packages.locked(WEB) if each.is_shipped]
    assert len(shipped) >= 7
    assert {each.name: each.licence for each in shipped if each.licence not in PERMISSIVE} == {}


def test_licences_come_with_what_they_are_of(tmp_path: Path) -> None:
    digest = base64.b64encode(b"x" * 64).decode()
    about = {"version": "1.2.3", "license": "MIT", "integrity": f"sha512-{digest}"}
    named = {
        "node_modules/a": about,
        "node_modules/a/node_modules/@s/b": about,
        "node_modules/c": {**about, "dev": True},
    }
    (tmp_path / "package-lock.json").write_text(json.dumps({"packages": {"": {}, **named}}))
    for place in named:
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "LICENSE.md").write_text(f"licence of {place}\n")
    assert packages.licences(tmp_path) == (
        "@s/b 1.2.3 (MIT)\n\nlicence of node_modules/a/node_modules/@s/b\n\n"
        "a 1.2.3 (MIT)\n\nlicence of node_modules/a\n"
    )


def test_a_package_without_a_hash_is_refused(tmp_path: Path) -> None:
    weak = {"node_modules/a": {"version": "1", "license": "MIT", "integrity": "sha1-AAAA"}}
    (tmp_path / "package-lock.json").write_text(json.dumps({"packages": weak}))
    with pytest.raises(ValueError, match="node_modules/a has no SHA-512"):
        list(packages.locked(tmp_path))
