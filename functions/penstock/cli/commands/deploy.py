"""penstock deploy: Penstock itself, to an AWS account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from penstock.cli import extras, terminal
from penstock.cli.command import Command, Session, mapping, pair, pass_session
from penstock.cli.commands.local import Steps
from penstock.cli.errors import Broken, Refused

if TYPE_CHECKING:
    from penstock.deploy.changes import Change, ChangeSet

SIGNS = {"Add": "+", "Modify": "~", "Remove": "-"}
HINT = "`aws sts get-caller-identity` says whose credentials are in force; --profile and --region choose others"


class Deploy(Command):
    """The global --profile is a service's; here it is AWS's, as in `aws` and `cdk`."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)
        ours = [each for each in self.params if each.name not in ("url", "token")]
        self.params = [each for each in ours if each.name != "profile" or each.expose_value]


@click.command(
    cls=Deploy,
    epilog="Example: penstock deploy --profile prod -c ec2=true -c alarm_email=ops@example.com",
)
@click.option(
    "-c",
    "--context",
    "given",
    type=pair,
    multiple=True,
    metavar="NAME=VALUE",
    help="Option of the deployment; empty: its default.",
)
@click.option("--profile", "aws_profile", metavar="NAME", help="AWS profile (default: as in your AWS configuration).")
@click.option("--region", metavar="REGION", help="AWS region (default: as in your AWS configuration).")
@click.option("--diff", is_flag=True, help="Only show what would change.")
@click.option("-y", "--yes", is_flag=True, help="Change it without asking.")
@pass_session
def deploy(
    session: Session,
    given: Sequence[tuple[str, str]],
    aws_profile: str | None,
    region: str | None,
    diff: bool,
    yes: bool,
) -> None:
    """Deploy Penstock to your AWS account: shows what would change, asks, changes it.

    Options that you gave before need not be given again: the stack remembers them. With `-c name=NAME` there may be
    several stacks. docs/operators/README.md has all options.
    """
    if diff and yes:
        raise click.UsageError("--diff changes nothing, so that --yes has no meaning with it")
    extras.require("deploy")
    with extras.needed("deploy"):
        from penstock.deploy import options, run
        from penstock.deploy.account import Account
    wanted = mapping(given, "-c")
    with _errors(), Steps(session.out) as steps:
        account = Account(aws_profile or session.profile, region)
        name = wanted.get("name") or options.STACK
        merged = options.merged(_before(session, options.remembered(account, name)), wanted)
        with run.synthesised(merged, steps) as assembly:
            proposed, warnings = run.propose(account, assembly, steps), assembly.warnings
    for each in warnings:
        session.out.note(each, "yellow")
    _show(session, proposed.changes)
    outputs = None
    with _errors():
        if _is_agreed(proposed, diff, yes):
            with Steps(session.out) as steps:
                steps(f"changing the stack {name}; this takes minutes")
                outputs = proposed.execute()
    if session.json:
        shown = [asdict(each) for each in proposed.changes]
        session.out.json({"stack": name, "region": account.region, "changes": shown, "outputs": outputs})
    elif outputs is not None:
        _tell(session, outputs, name, account.region, aws_profile or session.profile)


def _before(session: Session, remembered: Mapping[str, str] | None) -> Mapping[str, str]:
    """The options of before, which are shown."""
    for name, value in sorted((remembered or {}).items()):
        session.out.note(f"as before: -c {name}={value}")
    return remembered or {}


def _is_agreed(proposed: ChangeSet, diff: bool, yes: bool) -> bool:
    """Whether to make the changes. Those that are not made are dropped, also with Ctrl-C. Raises Refused with nobody
    to ask.
    """
    agreed = False
    try:
        if proposed.changes and not (diff or yes) and not terminal.can_ask():
            raise Refused(
                "nothing was changed: there is no terminal to ask at", "--yes changes it, --diff only shows it"
            )
        agreed = bool(proposed.changes) and not diff and (yes or click.confirm("Change this?", err=True))
    finally:
        if not agreed:
            proposed.drop()
    return agreed


def _show(session: Session, changes: Sequence[Change]) -> None:
    """A line for each resource: first those of which something is lost."""
    notes = [each for each in changes if each.is_metadata]
    rest = sorted((each for each in changes if not each.is_metadata), key=lambda each: (not each.is_loss, each.kind))
    if session.json:
        return
    for each in rest:
        session.out.line(_line(each))
    if notes:
        session.out.note(f"and only notes in the template about {len(notes)} resources")
    if not changes:
        session.out.note("nothing would change")


def _line(change: Change) -> str:
    parts = [SIGNS.get(change.action, change.action), change.kind, change.name, " ".join(change.what)]
    if change.action == "Modify" and change.is_loss:
        parts.append("(is replaced)" if change.replaces == "True" else "(may be replaced)")
    return "  ".join(each for each in parts if each)


def _tell(session: Session, outputs: Mapping[str, str], stack: str, region: str, profile: str | None) -> None:
    """The service's URL, and how to get its first token."""
    urls = [("url", outputs.get("ApiUrl")), ("console", outputs.get("ConsoleUrl"))]
    session.out.details([*urls, ("stack", stack), ("region", region)])
    with_profile = f"AWS_PROFILE={profile} " if profile else ""
    command = f"penstock user bootstrap --stack {stack} --region {region} --save NAME"
    session.out.note(f"the first operator's token: {with_profile}{command}")


@contextmanager
def _errors() -> Iterator[None]:
    """What AWS refuses, and what cannot be deployed, ends the command with its message."""
    from botocore.exceptions import BotoCoreError, ClientError

    from penstock.deploy.assembly import DeployError

    try:
        yield
    except DeployError as error:
        what, _, hint = str(error).rpartition("; ")
        raise Broken(what or hint, hint if what else None) from error
    except (BotoCoreError, ClientError) as error:
        raise Broken(f"AWS refuses: {error}", HINT) from error
