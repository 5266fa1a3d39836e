"""penstock config: what would change is shown, and nothing is removed without a word."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from rich.console import Console

from penstock.cli import terminal as terminals
from penstock.cli.commands import site_config
from penstock.cli.merge import merge
from tests.cli.conftest import Run
from tests.cli.service import Service

FILE = '[factories.here]\ndriver = "process"\n'
REMOVED = [("~", "targets.a.limit: 2 -> 4"), ("-", "- targets.b"), ("+", "+ targets.c")]
LOSS = "target/b: limit 3 -> removed; 2 held, 1 waiting"
DRIFT = {"pool": "target/a", "change": "limit 2 -> 5", "by": "bob", "at": "2026-01-02T00:00:00.000Z", "reset": True}
PAUSED = {"pool": "target/b", "change": "paused", "by": None, "at": None, "reset": False}


@pytest.fixture(autouse=True)
def file(home: Path) -> str:
    Path("site.toml").write_text(FILE)
    return "site.toml"


@pytest.fixture
def removing(service: Service) -> Service:
    """A service whose site has what the file has not."""
    service.site.differences = list(REMOVED)
    service.site.losses = [LOSS]
    return service


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who can be asked."""
    monkeypatch.setattr(terminals, "can_ask", lambda: True)


def test_a_check_shows_changes_and_warnings(penstock: Run, service: Service) -> None:
    checked = penstock("config", "check", "site.toml")
    assert (checked.exit_code, checked.stdout) == (0, "targets.a.limit: 2 -> 4\n")
    assert "warning: target a: anybody's jobs share its hosts" in checked.stderr
    service.site.differences = []
    assert "good; it would change nothing" in penstock("config", "check", "site.toml").stderr


@pytest.mark.parametrize("command", ["check", "diff", "apply"])
def test_a_file_without_any_table_is_refused_with_what_is_missing(
    penstock: Run, service: Service, command: str
) -> None:
    Path("empty.toml").write_text("# nothing\n")
    found = penstock("config", command, "empty.toml")
    assert found.exit_code == 2
    assert "[factories.NAME] and a table [targets.NAME]" in found.stderr
    assert service.asked == []


def test_what_is_not_toml_is_refused_with_its_line(penstock: Run) -> None:
    Path("site.toml").write_text("[factories\n")
    result = penstock("config", "apply", "site.toml")
    assert (result.exit_code, "line 1" in result.stderr) == (2, True)
    assert "can't read none.toml" in penstock("config", "diff", "none.toml").stderr


def test_a_diff_shows_changes_losses_and_what_was_changed_by_hand(penstock: Run, removing: Service) -> None:
    removing.site.drift = [DRIFT, PAUSED]
    was = removing.site.toml
    assert penstock("config", "diff", "site.toml").stdout.splitlines() == [
        "targets.a.limit: 2 -> 4",
        "- targets.b",
        "+ targets.c",
        "what jobs hold or wait for:",
        f"  {LOSS}",
        "changed by hand since eve applied the configuration at 2026-01-01T00:00:00.000Z:",
        "  target/a: limit 2 -> 5, by bob at 2026-01-02T00:00:00.000Z; applying takes it back",
        "  target/b: paused, the audit log does not say by whom; applying leaves it so",
    ]
    assert removing.site.toml == was


def test_ages_are_shown_on_terminals_and_signs_have_colours(penstock: Run, removing: Service) -> None:
    shown: list[tuple[str, str]] = []
    out = site_config.Output()
    out.console = Console(force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
    plan = removing.site.answer("PUT", {"check": ["true"]}, None, None)[1] | {"drift": [DRIFT]}
    site_config._show(out, plan, lambda text, style: shown.append((text, style)), "none")
    assert shown[:3] == [
        ("targets.a.limit: 2 -> 4", "yellow"), ("- targets.b", "red"), ("+ targets.c", "green"),
    ]  # fmt: skip
    assert shown[-2][0].endswith(" ago:")
    assert "by bob" in shown[-1][0]
    assert " ago; " in shown[-1][0]


def test_a_diff_has_an_exit_code_only_when_it_is_asked_for(penstock: Run, service: Service) -> None:
    assert penstock("config", "diff", "site.toml").exit_code == 0
    assert penstock("config", "diff", "site.toml", "--exit-code").exit_code == 1
    service.site.differences = []
    same = penstock("config", "diff", "site.toml", "--exit-code")
    assert (same.exit_code, same.stdout, "no differences" in same.stderr) == (0, "", True)


def test_a_plan_is_printed_as_json(penstock: Run, removing: Service) -> None:
    for words in (("diff", "site.toml"), ("apply", "site.toml", "--dry-run"), ("check", "site.toml")):
        found = json.loads(penstock("config", *words, "--json").stdout)
        assert [each["sign"] for each in found["differences"]] == ["~", "-", "+"]
    assert removing.paths("GET") == []


def test_a_dry_run_applies_nothing(penstock: Run, removing: Service) -> None:
    was = removing.site.toml
    assert "- targets.b" in penstock("config", "apply", "site.toml", "--dry-run").stdout
    assert removing.site.toml == was
    removing.site.differences = []
    assert "it would change nothing" in penstock("config", "apply", "site.toml", "--dry-run").stderr


def test_what_removes_nothing_is_applied_without_a_question(penstock: Run, service: Service) -> None:
    done = penstock("config", "apply", "site.toml")
    assert (done.exit_code, done.stdout) == (0, "targets.a.limit: 2 -> 4\n")
    assert service.site.toml == FILE
    assert "warning: target a" in done.stderr
    assert "nothing changed" in penstock("config", "apply", "site.toml").stderr
    assert json.loads(penstock("config", "apply", "site.toml", "--json").stdout)["changes"] == []


def test_a_script_removes_nothing_unless_it_says_so(penstock: Run, removing: Service) -> None:
    was = removing.site.toml
    refused = penstock("config", "apply", "site.toml")
    assert (refused.exit_code, removing.site.toml) == (2, was)
    for said in ("- targets.b", LOSS, "--yes"):
        assert said in refused.stderr
    assert penstock("config", "apply", "site.toml", "--yes").exit_code == 0
    assert removing.site.toml == FILE


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("said", "applied"), [("y\n", True), ("n\n", False)])
def test_somebody_at_a_terminal_is_shown_and_asked(penstock: Run, removing: Service, said: str, applied: bool) -> None:
    done = penstock("config", "apply", "site.toml", input=said)
    assert (done.exit_code == 0, removing.site.toml == FILE) == (applied, applied)
    for shown in ("- targets.b", LOSS, "It removes 1 of these"):
        assert shown in done.stderr


def test_what_was_shown_is_what_is_replaced_or_nothing_is(penstock: Run, removing: Service) -> None:
    removing.site.meanwhile = ["# theirs\n"]
    refused = penstock("config", "apply", "site.toml", "--yes")
    assert (refused.exit_code, removing.site.toml) == (2, "# theirs\n")
    assert "not the one that you saw" in refused.stderr


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("sure", [(), ("--yes",)])
def test_after_somebody_elses_change_it_is_shown_anew_and_asked_again(
    penstock: Run, service: Service, sure: tuple[str, ...]
) -> None:
    service.site.meanwhile = ["# theirs\n"]
    done = penstock("config", "apply", "site.toml", *sure, input="y\n")
    assert (done.exit_code, service.site.toml) == (0, FILE)
    assert "would change now" in done.stderr
    assert "Apply it?" in done.stderr


def test_a_merge_keeps_the_other_tables_and_their_comments(penstock: Run, service: Service) -> None:
    assert penstock("config", "apply", "site.toml", "--merge").exit_code == 0
    assert tomllib.loads(service.site.toml) == {
        "targets": {"a": {"factory": "here"}}, "factories": {"here": {"driver": "process"}},
    }  # fmt: skip
    assert "# ours" in service.site.toml


def test_a_merge_replaces_only_what_it_was_merged_into(penstock: Run, service: Service) -> None:
    theirs = '[targets.z]\nfactory = "there"\n'
    service.site.meanwhile = [theirs]
    assert penstock("config", "apply", "site.toml", "--merge").exit_code == 2
    assert service.site.toml == theirs


def test_a_merge_into_no_site_is_the_file(penstock: Run, service: Service) -> None:
    service.site.toml = ""
    assert penstock("config", "apply", "site.toml", "--merge").exit_code == 0
    assert tomllib.loads(service.site.toml) == tomllib.loads(FILE)


@pytest.mark.parametrize(
    ("site", "file", "merged"),
    [
        ("[limits]\nqueue = 3\n", "[limits]\nlease = 5\n", {"limits": {"queue": 3, "lease": 5}}),
        ("[targets.a]\nlimit = 1\nsudo = false\n", "[targets.a]\nlimit = 2\n", {"targets": {"a": {"limit": 2}}}),
        ("targets = { a = { limit = 1 } } # on one line\n", "[targets.b.warm]\nmax = 1\n",
         {"targets": {"a": {"limit": 1}, "b": {"warm": {"max": 1}}}}),
        ("[targets.a]\nlimit = 1\n[wells.w]\n[targets.b]\n", 'targets."c.d".limit = 2\n',
         {"targets": {"a": {"limit": 1}, "b": {}, "c.d": {"limit": 2}}, "wells": {"w": {}}}),
        ("[targets.a.warm]\nmax = 1\n[shares]\n", "[targets.a]\nlimit = 1\n[shares.weights]\nada = 2\n",
         {"targets": {"a": {"limit": 1}}, "shares": {"weights": {"ada": 2}}}),
        ("[limits]\nqueue = 3\n", "limits = 4\n", {"limits": 4}),
    ],
)  # fmt: skip
def test_what_a_merge_says(site: str, file: str, merged: object) -> None:
    assert tomllib.loads(merge(site, file)) == merged
