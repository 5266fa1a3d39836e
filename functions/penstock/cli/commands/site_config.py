"""penstock config: what a site's configuration would change, and applying it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import terminal, times
from penstock.cli.command import Command, Group, Session, arguments, pass_session
from penstock.cli.commands.site import NO_SITE
from penstock.cli.errors import Refused
from penstock.cli.output import Output

if TYPE_CHECKING:
    from penstock.cli.client import Object

config = Group("config", "Check, compare, apply and show the site's configuration, a TOML file (operators only).")

STYLES = {"+": "green", "-": "red", "~": "yellow"}
"""The colours of differences, by their sign."""

CHANGED_MEANWHILE = 412
"""The status of a refusal to replace another configuration than the one that was shown."""

merging = click.option("--merge", is_flag=True, help="Add or replace the tables in FILE; keep the site's other tables.")


def _read(file: str) -> str:
    """The text of a configuration file. Raises Refused, with the line, unless it is TOML and says something."""
    try:
        text = Path(file).read_text()
        found = tomllib.loads(text)
    except OSError as error:
        raise Refused(f"can't read {file}: {error.strerror}", "give the path of a site's TOML file") from error
    except ValueError as error:
        raise Refused(f"{file} is not TOML: {error}", "nothing was sent") from error
    if not found:
        what = f"{file} is empty: a site needs at least a table [factories.NAME] and a table [targets.NAME]"
        raise Refused(what, "start from examples/site.toml; `penstock config show` prints what is in force")
    return text


def _asked(session: Session, file: str, merge: bool) -> tuple[Object, str]:
    """The request for a file; and, for a merge, which configuration it was merged into."""
    text = _read(file)
    if not merge:
        return {"toml": text, "path": file}, ""
    from penstock.cli import merge as merging

    found = session.api.get("config")
    return {"toml": merging.merge(found["toml"] or "", text), "path": f"the site with {file}"}, str(found["base"])


def _plan(session: Session, file: str, merge: bool) -> tuple[Object, Object, str]:
    """The request, what it would do, and the configuration that this is about."""
    body, base = _asked(session, file, merge)
    plan = dict(session.api.put("config", body=body, check="true"))
    return body, plan, base or str(plan["base"])


def _show(out: Output, plan: Object, line: Callable[[str, str], None], none: str) -> None:
    """What would change, what jobs would lose, and what was changed by hand; warnings are notes."""
    for each, said in zip(plan["differences"], plan["changes"], strict=True):
        line(said, STYLES[each["sign"]])
    if not plan["differences"]:
        out.note(none)
    _list(line, "what jobs hold or wait for:", [each["summary"] for each in plan["losses"]])
    _list(line, _since(out, plan), [_drift(out, each) for each in plan["drift"]])
    for warning in plan["warnings"]:
        out.note(f"warning: {warning}", "yellow")


def _list(line: Callable[[str, str], None], title: str, entries: list[str]) -> None:
    if entries:
        line(title, "bold")
    for entry in entries:
        line(f"  {entry}", "yellow")


def _since(out: Output, plan: Object) -> str:
    by = f"{plan['applied_by']} applied the configuration{_when(out, plan['applied_at'])}"
    return f"changed by hand since {by}:" if plan["applied_by"] else "changed by hand:"


def _drift(out: Output, each: Mapping[str, Any]) -> str:
    who = f"by {each['by']}{_when(out, each['at'])}" if each["by"] else "the audit log does not say by whom"
    return f"{each['pool']}: {each['change']}, {who}; applying {'takes it back' if each['reset'] else 'leaves it so'}"


def _when(out: Output, at: str | None) -> str:
    if not at:
        return ""
    return f" {times.age(times.parse(at), out.now())}" if out.console.is_terminal else f" at {at}"


def _print_plan(session: Session, plan: Object, none: str) -> None:
    if session.json:
        session.out.json(plan)
    else:
        _show(session.out, plan, session.out.line, none)


@config.command(cls=Command)
@arguments("FILE")
@pass_session
def check(session: Session, file: str) -> None:
    """Check a configuration and show what it would change, and what it allows that you may not mean."""
    _print_plan(session, _plan(session, file, False)[1], "good; it would change nothing")


@config.command(cls=Command, epilog="Example: penstock config diff site.toml --exit-code")
@arguments("FILE")
@merging
@click.option("--exit-code", is_flag=True, help="Exit with 1 if anything differs.")
@pass_session
def diff(session: Session, file: str, merge: bool, exit_code: bool) -> int:
    """Show what applying FILE would change, key by key.

    `+` is added, `-` is removed. Then come pools that would lose what jobs hold or wait for, and what was changed on
    the site by hand since its configuration was applied: who resized or paused a pool, and when.
    """
    plan = _plan(session, file, merge)[1]
    _print_plan(session, plan, "no differences")
    return int(exit_code and bool(plan["differences"]))


@config.command(cls=Command)
@arguments("FILE")
@merging
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--yes", is_flag=True, help="Do not ask before anything is removed.")
@pass_session
def apply(session: Session, file: str, merge: bool, dry_run: bool, yes: bool) -> None:
    """Apply a configuration and show what changed. A lower limit does not interrupt jobs.

    If anything would be removed, shows it and asks; without a terminal it refuses, unless --yes is given. What is
    applied is what was shown: if somebody else applies a configuration meanwhile, nothing is applied.
    """
    if dry_run:
        _print_plan(session, _plan(session, file, merge)[1], "it would change nothing")
        return
    answer = _apply(session, file, merge, yes)
    if session.json:
        session.out.json(answer)
        return
    for change in answer["changes"]:
        session.out.line(change, STYLES.get(change[:2].strip(), ""))
    if not answer["changes"]:
        session.out.note("nothing changed")
    for warning in answer["warnings"]:
        session.out.note(f"warning: {warning}", "yellow")


def _apply(session: Session, file: str, merge: bool, yes: bool) -> Object:
    """Apply it once it is agreed to. After somebody else's change it is shown anew, where somebody can be asked."""
    moved = False
    while True:
        body, plan, base = _plan(session, file, merge)
        if moved or (not yes and _removed(plan)):
            _agree(session, plan)
        try:
            return dict(session.api.put("config", body=body, headers={"If-Match": base}))
        except Refused as error:
            if error.status != CHANGED_MEANWHILE or not terminal.can_ask():
                raise
            session.out.note(f"{error.what}. What applying {file} would change now:", "yellow")
            moved = True


def _removed(plan: Object) -> list[str]:
    """What would be removed, a line each."""
    pairs = zip(plan["differences"], plan["changes"], strict=True)
    return [said for each, said in pairs if each["sign"] == "-"]


def _agree(session: Session, plan: Object) -> None:
    """Ask whether to go on. Raises Refused, with all that would be removed, where nobody can be asked."""
    removed = _removed(plan)
    if not terminal.can_ask():
        lines = [*removed, *(each["summary"] for each in plan["losses"])]
        hint = "--yes removes it without asking; `penstock config diff FILE` shows all changes"
        raise Refused("this would remove what the file does not have, and nobody is here to be asked", hint, lines)
    _show(session.out, plan, partial(session.out.note), "it changes nothing any more")
    question = f"Apply it? It removes {len(removed)} of these" if removed else "Apply it?"
    click.confirm(question, abort=True, err=True)


@config.command("show", cls=Command)
@pass_session
def show_config(session: Session) -> None:
    """Print the site's configuration."""
    answer = session.api.get("config")
    if session.json:
        session.out.json(answer)
    elif answer.get("toml"):
        session.out.data(str(answer["toml"]).rstrip("\n"))
    else:
        session.out.note(f"no configuration yet: {NO_SITE.partition('; ')[2]}")
