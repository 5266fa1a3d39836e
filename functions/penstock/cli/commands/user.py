"""penstock user, whoami, audit: users, their privileges, and what operators did."""

from __future__ import annotations

from urllib.parse import quote

import click
import httpx

from penstock.cli import extras
from penstock.cli.command import Command, Group, Listing, Session, arguments, pass_session, since
from penstock.cli.commands.token import Lasting, lasting
from penstock.cli.config import Profile, save_profile
from penstock.cli.errors import Broken, CliError, Refused, Unreachable
from penstock.cli.output import Column, Fit, Moment, moment

USERS = (
    Column("NAME", "name", fit=Fit.ID),
    Column("PRIVILEGES", "privileges"),
    Column("STATE", "state"),
    Column("CREATED", moment("created")),
)

group = Group("user", "Manage users and their privileges.")


@group.command(cls=Command)
@arguments("NAME")
@click.option("--privilege", "privileges", multiple=True, metavar="P", help="Privilege to grant at once: admin.")
@pass_session
def create(session: Session, name: str, privileges: tuple[str, ...]) -> None:
    """Create a user, or a repository such as oxide:hubris (operators only). `penstock token create` makes a token."""
    answer = session.api.make("users", body={"name": name, "privileges": list(privileges)})
    session.out.done(f"user {name} is created", answer)
    if not session.json:
        session.out.note(f"`penstock token create --user {name}` makes a token")


BY_NUMBER = "give its number with --id: the `id` that GitHub's API shows at /users/LOGIN"

ID_URL = "https://api.github.com/users/"


@group.command(cls=Command)
@arguments("NAME")
@click.option("--github", "login", required=True, metavar="LOGIN", help="The account's login at GitHub.")
@click.option("--id", "id", type=click.IntRange(1), help="The account's number at GitHub (default: ask github.com).")
@pass_session
def link(session: Session, name: str, login: str, id: int | None) -> None:
    """Let a GitHub account sign in to the console as the user NAME (operators only).

    The account is known by its number at GitHub, so neither a new login nor somebody who takes over an old one changes
    who it is. The link lasts as long as your token, and is a token of the user's: `penstock token revoke` ends it.
    """
    number = id or _number(login)
    answer = session.api.put("users", name, "github", body={"id": number, "login": login})
    session.out.done(f"the GitHub account {login} (number {number}) signs in as {answer['user']}", answer)


def _number(login: str) -> int:
    """The number of an account at github.com. Raises Refused where there is none, Unreachable without an answer."""
    try:
        found = httpx.get(ID_URL + quote(login, safe=""), timeout=20, follow_redirects=False)
    except httpx.HTTPError as error:
        raise Unreachable(f"github.com does not answer: {error}", BY_NUMBER) from error
    number = found.json().get("id") if found.status_code == 200 else None
    if not isinstance(number, int):
        raise Refused(f"github.com knows no account {login} ({found.status_code})", BY_NUMBER)
    return number


@group.command("list", cls=Listing)
@pass_session
def list_(session: Session) -> None:
    """List the users (operators only)."""
    session.out.table(session.api.items("users"), USERS, "no users")


@group.command(cls=Command)
@arguments("NAME", "PRIVILEGE")
@pass_session
def grant(session: Session, name: str, privilege: str) -> None:
    """Grant a privilege to a user (operators only). `admin` includes every privilege except `identity.vouch`."""
    answer = session.api.put("users", name, "privileges", privilege)
    session.out.done(f"{name} has {privilege}", answer)


@group.command(cls=Command)
@arguments("NAME", "PRIVILEGE")
@click.option("--now", is_flag=True, help="Also cancel jobs that hold something which needs it.")
@pass_session
def revoke(session: Session, name: str, privilege: str, now: bool) -> None:
    """Revoke a privilege (operators only). Waiting jobs that need it fail; jobs that hold something keep it."""
    answer = session.api.delete("users", name, "privileges", privilege, **({"now": "true"} if now else {}))
    session.out.done(f"{name} no longer has {privilege}", answer)
    if not session.json:
        _tell(session, answer.get("stopped") or [], answer.get("holding") or [], now)


def _tell(session: Session, stopped: list[str], holding: list[str], now: bool) -> None:
    """What a revocation did to jobs."""
    if stopped:
        session.out.note(f"{_jobs(stopped)} waited under it and will fail: {', '.join(stopped)}")
    if holding and now:
        session.out.note(f"{_jobs(holding)} held something under it and are being cancelled: {', '.join(holding)}")
    elif holding:
        told = f"{_jobs(holding)} hold something under it, and keep it until they end: {', '.join(holding)}"
        session.out.note(f"{told}; --now cancels them")


def _jobs(found: list[str]) -> str:
    return f"{len(found)} job{'s' * (len(found) != 1)}"


@group.command(cls=Command)
@arguments("NAME")
@click.option(
    "--leases",
    type=click.Choice(["end", "keep"]),
    default="keep",
    show_default=True,
    help="What becomes of jobs that run. Jobs that wait end in any case.",
)
@pass_session
def disable(session: Session, name: str, leases: str) -> None:
    """Refuse all tokens of a user from now on, and end their waiting jobs (operators only)."""
    answer = session.api.act("users", name, "disable", body={"leases": leases})
    session.out.done(f"{name} is disabled", answer)
    if session.json:
        return
    running = answer.get("running") or []
    if running:
        session.out.note(f"{_jobs(running)} still run or end: {', '.join(running)}")
    if not answer["is_done"]:
        session.out.note("the service looks again for jobs for the next minutes, and ends those that wait")


@group.command(cls=Command)
@arguments("NAME")
@pass_session
def enable(session: Session, name: str) -> None:
    """Let a disabled user act again, with the tokens that have not been revoked (operators only)."""
    session.out.done(f"{name} is enabled", session.api.act("users", name, "enable"))


@group.command(cls=Command)
@arguments("NAME", "NEW-NAME")
@pass_session
def rename(session: Session, name: str, new_name: str) -> None:
    """Give a user another name (operators only). Tokens, jobs and files of the former name stay theirs."""
    answer = session.api.act("users", name, "rename", body={"name": new_name})
    session.out.done(f"{name} is called {new_name}", answer)


@group.command(cls=Command)
@arguments("NAME")
@pass_session
def remove(session: Session, name: str) -> None:
    """Remove a disabled user, nothing of whose runs any more (operators only). The name is not given again."""
    answer = session.api.delete("users", name)
    session.out.done(f"{name} is removed", answer)
    if not session.json:
        for line in answer["left"]:
            session.out.note(line)


@group.command(cls=Command)
@click.option("--stack", default="Penstock", show_default=True, metavar="NAME", help="Name of the stack.")
@click.option("--region", metavar="REGION", help="AWS region of the stack (default: as in your AWS configuration).")
@click.option("--expires", type=lasting, metavar="D", help="Lifetime of the token: 12h, 30d, never (default: 90d).")
@click.option("--user", "name", default="admin", show_default=True, metavar="NAME", help="Name of the operator.")
@click.option("--save", metavar="PROFILE", help="Also save URL and token as this profile.")
@pass_session
def bootstrap(session: Session, stack: str, region: str | None, expires: Lasting, name: str, save: str | None) -> None:
    """Make the first operator of a deployed stack, with your AWS credentials, and print a token.

    Needs permission to write to the stack's DynamoDB table. Each run makes another token. An operator of this name who
    was disabled, or lost the privilege `admin`, is an operator again.
    """
    url, secret = first_operator(stack, region, name, expires)
    if save:
        save_profile(session.config_path, save, Profile(url, secret))
    if session.json:
        session.out.json({"url": url, "token": secret})
        return
    session.out.details([("url", url), ("token", secret)])
    session.out.note("the token is shown once; `penstock token list` says until when it works")


@click.command(cls=Command)
@pass_session
def whoami(session: Session) -> None:
    """Show your user name and privileges at the service, and what your token is good for."""
    answer = session.api.get("whoami")
    if session.json:
        session.out.json(answer)
        return
    target, token = session.target, answer.pop("token", {})
    facts = [(name, Moment(value) if name == "created" else value) for name, value in answer.items()]
    facts += [(f"token {name}", token[name]) for name in ("id", "name", "scopes") if name in token]
    facts += [("token expires", Moment(token["expires"]) if token["expires"] else "never")] if token else []
    session.out.details([*facts, ("service", target.url), ("profile", target.profile)])


HINT = "`aws sts get-caller-identity` says whose credentials are in force; --stack and --region say where to look"


def first_operator(stack: str, region: str | None, name: str, expires: Lasting) -> tuple[str, str]:
    """The service's URL and a new token of its first operator. Raises CliError with what AWS answered."""
    with extras.needed("aws"):
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        from penstock.bootstrap_admin import create_admin
        from penstock.kernel.errors import Refused
    try:
        client = boto3.client("cloudformation", region_name=region)
        (found,) = client.describe_stacks(StackName=stack)["Stacks"]
        outputs = {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", [])}
        table = {"TABLE": outputs["TableName"], "AWS_REGION": client.meta.region_name}
        return outputs["ApiUrl"], create_admin(table, expires, name)
    except KeyError as error:
        raise Broken(
            f"the stack {stack} has no output {error}: it is not Penstock's, or not deployed whole", HINT
        ) from error
    except (BotoCoreError, ClientError) as error:
        raise CliError(f"AWS refuses: {error}", HINT) from error
    except Refused as refused:
        raise CliError(refused.detail, "give another name with --user") from refused


DONE = (
    Column("TIME", moment("time")),
    Column("WHO", "by"),
    Column("DID", "did"),
    Column("WHAT", "what"),
    Column("DETAIL", "detail"),
)


LIMIT = 50

audit = Group("audit", "Show what operators did: who, when, what (operators only).")


@audit.command("list", cls=Listing)
@click.option("--since", type=since, metavar="D", help="Only actions since then: 7d, or 2026-01-31T10:00:00Z.")
@click.option("--until", type=since, metavar="D", help="Only actions before then, written likewise.")
@click.option("--who", metavar="NAME", help="Only actions of this user.")
@click.option("--did", metavar="ACTION", help="Only this action, such as pause or 'apply config'.")
@click.option("--what", metavar="TEXT", help="Only actions on this: what WHAT begins with, such as 'pool resource/'.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=LIMIT, show_default=True, metavar="N", help="Show at most N entries."
)
@pass_session
def list_audit(session: Session, /, limit: int, **wanted: str | None) -> None:
    """List actions on users, pools, units, the site and other users' jobs, newest first."""
    query = [(name, value) for name, value in wanted.items() if value]
    found = session.api.items("audit", query=query, most=limit)
    session.out.table(found, DONE, "nothing was done")
    if found.more and not session.json:
        session.out.note("there are more: give a higher --limit")
