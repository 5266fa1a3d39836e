"""Downloads: whole and checked, or not there at all."""

import hashlib
import json
from pathlib import Path

import pytest

from tests.cli import service as service_module
from tests.cli.conftest import Run
from tests.cli.screens import run_on_terminal
from tests.cli.service import BYTES, TOKEN, Service

OUTPUT = "/work/out/log.txt"


def test_copy_into_the_working_directory(penstock: Run, service: Service) -> None:
    result = penstock("job", "copy", service.add(), OUTPUT)
    assert (result.exit_code, Path("log.txt").read_bytes()) == (0, BYTES)
    assert "38.0 KiB" in result.stdout


def test_copy_to_a_name_and_into_a_folder(penstock: Run, service: Service) -> None:
    Path("folder").mkdir()
    penstock("job", "copy", service.add(), OUTPUT, "other.txt")
    penstock("job", "copy", "j1", OUTPUT, "folder")
    assert Path("other.txt").read_bytes() == Path("folder/log.txt").read_bytes() == BYTES


def test_copy_to_stdout(penstock: Run, service: Service) -> None:
    result = penstock("job", "copy", service.add(), OUTPUT, "-")
    assert (result.exit_code, result.stdout_bytes, result.stderr) == (0, BYTES, "")
    assert list(Path().iterdir()) == []
    assert penstock("job", "copy", "j1", OUTPUT, "./-").exit_code == 0
    assert Path("-").read_bytes() == BYTES


def test_damaged_bytes_are_not_printed(penstock: Run, service: Service) -> None:
    service.content = b"x" + BYTES[1:]
    result = penstock("job", "copy", service.add(), OUTPUT, "-")
    assert (result.exit_code, result.stdout_bytes) == (4, b"")


def test_json_and_an_output_do_not_share_stdout(penstock: Run, service: Service) -> None:
    result = penstock("job", "copy", service.add(), OUTPUT, "-", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--json and - both need stdout" in result.stderr


def test_what_an_output_would_do_to_a_terminal_is_left_out(
    penstock: Run, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.content = b"\x1b]0;title\x07a\xff\nb\n"
    monkeypatch.setitem(service_module.OUTPUT, "sha256", hashlib.sha256(service.content).hexdigest())
    monkeypatch.setitem(service_module.OUTPUT, "size", len(service.content))
    seen = run_on_terminal(["job", "copy", service.add(), OUTPUT, "-"])
    assert (seen.code, seen.last[-2:]) == (0, ["]0;titlea\ufffd", "b"])
    assert "\x1b]0" not in seen.written


def test_damaged_bytes_leave_nothing(penstock: Run, service: Service) -> None:
    service.content = b"x" + BYTES[1:]
    result = penstock("job", "copy", service.add(), OUTPUT)
    assert result.exit_code == 4
    assert "arrived damaged" in result.stderr
    assert list(Path().iterdir()) == []


def test_damaged_bytes_leave_what_was_there(penstock: Run, service: Service) -> None:
    Path("log.txt").write_text("old")
    service.content = b"x" + BYTES[1:]
    penstock("job", "copy", service.add(), OUTPUT)
    assert [path.read_text() for path in Path().iterdir()] == ["old"]


def test_broken_download_is_continued(penstock: Run, service: Service) -> None:
    service.break_off = 2
    assert penstock("job", "copy", service.add(), OUTPUT).exit_code == 0
    assert Path("log.txt").read_bytes() == BYTES
    ranges = [headers.get("Range") for _, path, headers, _ in service.asked if path.startswith("/bytes")]
    half, quarter = len(BYTES) // 2, len(BYTES) // 4
    assert ranges[0] is None
    assert ranges[1:] == [f"bytes={half}-", f"bytes={half + quarter}-"]


def test_next_command_continues(penstock: Run, service: Service) -> None:
    service.break_off = 5
    result = penstock("job", "copy", service.add(), OUTPUT)
    assert (result.exit_code, Path("log.txt").exists()) == (5, False)
    assert "the same command continues it" in result.stderr
    assert penstock("job", "copy", "j1", OUTPUT).exit_code == 0
    assert [path.read_bytes() for path in Path().iterdir()] == [BYTES]


def test_the_token_is_not_sent_to_the_store_of_bytes(penstock: Run, service: Service) -> None:
    penstock("job", "copy", service.add(), OUTPUT)
    asked = [headers for _, path, headers, _ in service.asked if path.startswith("/bytes")]
    assert TOKEN not in str(asked)


def test_an_unknown_output_lists_the_known_ones(penstock: Run, service: Service) -> None:
    result = penstock("job", "copy", service.add(), "log")
    assert (result.exit_code, "  /work/out/log.txt" in result.stderr) == (2, True)


def test_copy_to_a_wrong_place_is_refused(penstock: Run, service: Service) -> None:
    result = penstock("job", "copy", service.add(), OUTPUT, "missing/x")
    assert (result.exit_code, "can't write missing/x" in result.stderr) == (2, True)


def test_sign(penstock: Run, service: Service) -> None:
    assert penstock("job", "sign", service.add(), OUTPUT).stdout == f"{service.url}/bytes?secret=1\n"
    answer = json.loads(penstock("job", "sign", "j1", "o1", "--expires-in", "10m", "--json").stdout)
    assert answer["url"].endswith("secret=1")
    assert service.asked[-1][3] == {"expires_in": 600}
