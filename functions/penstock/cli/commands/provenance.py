"""penstock job provenance, verify."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import click

from penstock.cli.command import Command, Session, pass_session
from penstock.cli.references import JOB

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=Command)
@click.argument("job", required=False, metavar="[JOB]", type=JOB)
@click.option("--key", is_flag=True, help="Print the public key that statements are signed with.")
@pass_session
def provenance(session: Session, job: str | None, key: bool) -> None:
    """Print the signed statement about a job's outputs: who had them made, from what, and on what.

    The job must have succeeded. Save it beside the files; `job verify` and other tools check them with it.
    """
    if (job is None) != key:
        raise click.UsageError("give a JOB, or --key")
    if job is None:
        found = session.api.get("provenance", "key")
        session.out.json(found) if session.json else session.out.data(str(found["pem"]).removesuffix("\n"))
        return
    session.out.data(json.dumps(session.api.get("jobs", job, "provenance")))


@click.command(
    cls=Command, epilog="Example: penstock job verify app.tar.gz -p app.json -k penstock.pem --owner oxide:hubris"
)
@click.argument("file", type=FILE, metavar="FILE")
@click.option(
    "-p", "--provenance", "stated", type=FILE, required=True, help="The statement, from `job provenance JOB`."
)
@click.option("-k", "--key", type=FILE, required=True, help="The service's public key, from `job provenance --key`.")
@click.option("--owner", metavar="NAME", help="Fail unless the job was this user's or repository's.")
@click.option("--job-name", metavar="NAME", help="Fail unless the job had this name.")
@click.option("--ref", metavar="REF", help="Fail unless it ran for this ref: refs/heads/main.")
@click.option("--commit", metavar="SHA", help="Fail unless it ran for this commit.")
@click.option("--pull-request", "any_pull", is_flag=True, help="Accept what was made for a pull request, too.")
@pass_session
def verify(
    session: Session,
    file: Path,
    stated: Path,
    key: Path,
    owner: str | None,
    job_name: str | None,
    ref: str | None,
    commit: str | None,
    any_pull: bool,
) -> None:
    """Check that a job made a file, and show for whom and from what. Needs no service.

    The signature says that it was a job of the service with this key. Whose job it was, you say with --owner.
    """
    from penstock.cli.provenance import Unverified, read_key
    from penstock.cli.provenance import verify as verified

    found = asdict(verified(file, stated, read_key(key)))
    _compare(found, {"owner": owner, "job_name": job_name, "ref": ref, "commit": commit})
    if found["pull_request"] and not any_pull:
        why = f"it was made for pull request {found['pull_request']}, whose commit anybody may have written"
        raise Unverified(why, "--pull-request accepts that")
    if session.json:
        session.out.json(found)
    else:
        session.out.details((name.replace("_", " "), value) for name, value in found.items() if value)
        session.out.note(f"✓ {file} was made by this job", "green")


def _compare(found: Mapping[str, str], wanted: Mapping[str, str | None]) -> None:
    """Raises Unverified for a file that is not what somebody wants."""
    from penstock.cli.provenance import Unverified

    for name, value in wanted.items():
        if value not in (None, found[name]):
            why = f"the {name.replace('_', ' ')} is {found[name] or 'not known'}, not {value}"
            raise Unverified(why, "the file is signed, and not what you want")
