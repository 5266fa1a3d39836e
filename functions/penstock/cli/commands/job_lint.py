"""penstock job lint."""

from __future__ import annotations

from dataclasses import asdict

import click

from penstock.cli.framework import Command
from penstock.cli.session import Session, pass_session
from penstock.cli.submit import counted
from penstock.cli.submit import lint as problems_of


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@pass_session
def lint(session: Session, files: tuple[str, ...]) -> int:
    """Check job files: what is wrong, where, and what was meant. Asks no service."""
    problems = [problem for file in files for problem in problems_of(file)]
    if session.json:
        session.out.json([asdict(problem) for problem in problems])
    for problem in problems if not session.json else ():
        session.out.line(str(problem))
    if not session.json:
        good = len(files) - len({problem.file for problem in problems})
        summary = f"{counted(len(problems), 'problem')}, {good} of {counted(len(files), 'file')} good"
        session.out.note(summary, "red" if problems else "green")
    return 2 if problems else 0
