"""Which tests belong to what changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import changed

TESTS = {
    "tests/usecases/test_hosts.py": "from penstock.usecases.workers import agents",
    "tests/usecases/test_other.py": "def test_it():\n    from penstock.usecases.workers.hosts import ask",
    "tests/agent/test_bmat.py": "",
    "tests/agent/test_mask.py": "from tests.agent.conftest import Worker",
}


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    for name, text in TESTS.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    return list(map(Path, TESTS))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/agent/test_mask.py", ["tests/agent/test_mask.py"]),
        ("tests/agent/conftest.py", ["tests/agent/test_mask.py"]),
        (
            "functions/penstock/usecases/workers/hosts.py",
            ["tests/usecases/test_hosts.py", "tests/usecases/test_other.py"],
        ),
        ("functions/penstock/agent/bmat/usage.py", ["tests/agent/test_bmat.py"]),
        ("functions/penstock/agent/bmat/__init__.py", ["tests/agent/test_bmat.py"]),
        ("functions/penstock/api/jobs.py", []),
    ],
)
def test_tests_are_found_by_name_and_by_import(tests: list[Path], path: str, expected: list[str]) -> None:
    assert list(map(str, changed.select([path], tests))) == expected
