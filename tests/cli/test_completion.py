"""What a shell is offered at Tab: jobs, pools, targets, resource types, outputs; and nothing when that fails."""

import socket
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from penstock.cli import client, completion
from penstock.cli.app import cli
from tests.cli.ids import id_at
from tests.cli.service import TOKEN, Service

IDS = [id_at(number * 40_000_000) for number in range(3)]
Offer = Callable[..., list[str]]


@pytest.fixture
def offer(service: Service, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """What bash is offered for the words of a line, the last at the cursor. Slow machines may take long."""
    monkeypatch.setattr(completion, "SECONDS", 60.0)
    monkeypatch.setenv("PENSTOCK_URL", service.url)
    monkeypatch.setenv("PENSTOCK_TOKEN", TOKEN)
    for id in IDS:
        service.add(id=id, name="build")
    return offers


def offers(*words: str, shell: str = "bash") -> list[str]:
    line = " ".join(("penstock", *words))
    where = words[-1] if shell == "fish" else str(len(words))
    known = {"COMP_WORDS": line, "COMP_CWORD": where, "_PENSTOCK_COMPLETE": f"{shell}_complete"}
    result = CliRunner().invoke(cli, [], env=known, catch_exceptions=False)
    assert result.stderr == ""
    return [line for line in result.stdout.splitlines() if line]


@pytest.mark.parametrize("command", ["show", "why", "tail", "cancel", "retry", "copy", "send", "hold", "publish"])
def test_jobs(offer: Offer, command: str) -> None:
    assert offer("job", command, "") == [f"plain,{id}" for id in reversed(IDS)]
    assert offer("job", command, IDS[1][:5]) == [f"plain,{IDS[1]}"]
    assert offer("job", command, IDS[1][:5].lower()) == [f"plain,{IDS[1]}"]
    assert offer("job", command, "build") == []


def test_shells_that_show_it_get_state_and_name(offer: Offer) -> None:
    assert offer("job", "show", IDS[2][:6], shell="fish") == [f"plain,{IDS[2]}\tqueued build"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("pool", "show", ""), ["resource/bench"]),
        (("pool", "pause", "resource/"), ["resource/bench"]),
        (("pool", "resize", "target/"), []),
        (("job", "run", "-t", "la"), ["lab"]),
        (("job", "list", "--target", ""), ["default", "lab", "closed", "big"]),
        (("target", "show", "d"), ["default"]),
        (("job", "run", "-r", "da"), ["database"]),
        (("job", "copy", "-", ""), ["/work/out/log.txt"]),
        (("job", "sign", IDS[0], "/work/"), ["/work/out/log.txt"]),
        (("job", "publish", IDS[0][:4], "/else"), []),
        (("job", "copy", "nope", ""), []),
        (("job", "run", "-d", f"a={IDS[0][:5]}"), [f"a={IDS[0]}"]),
        (("job", "run", "-d", "a"), []),
        (("worker", "show", "w"), ["w1"]),
    ],
)
def test_names(offer: Offer, service: Service, words: tuple[str, ...], offered: list[str]) -> None:
    service.worker["hold"] = {}
    service.workers = [service.worker]
    assert offer(*words) == [f"plain,{name}" for name in offered]


def test_commands_and_options_are_offered_without_a_service() -> None:
    assert "plain,show" in offers("job", "s")
    assert offers("job", "list", "--col") == ["plain,--columns"]


def test_a_service_that_refuses_is_asked_once(offer: Offer, service: Service) -> None:
    for trouble in ("crash", "away", "limited"):
        service.asked.clear()
        setattr(service, trouble, 5)
        assert offer("job", "show", "") == []
        assert len(service.asked) == 1
        setattr(service, trouble, 0)


def test_no_service_at_all() -> None:
    assert offers("job", "show", "") == []
    assert offers("--url", "http://127.0.0.1:9", "job", "show", "") == []
    assert offers("--profile", "nowhere", "pool", "show", "") == []


def test_a_service_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for less than a second. Who waited for a request's own timeout would not end here."""
    assert completion.SECONDS < 1
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 3600.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert offers("--url", f"http://127.0.0.1:{silent.getsockname()[1]}", "job", "show", "") == []
